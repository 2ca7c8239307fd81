#include "solver/searches/portfolio_schedule.h"

#include <iterator>

namespace shardplan {

std::string_view to_string(Engine engine) {
  switch (engine) {
    case Engine::kBound:
      return "bound";
    case Engine::kDive:
      return "dive";
    case Engine::kPart:
      return "promising part";
    case Engine::kTrees:
      return "tree neighbourhood";
    case Engine::kBlocks:
      return "block neighbourhood";
    case Engine::kExact:
      return "branch and bound";
  }
  return "";
}

namespace {

Engine with_parts(std::uint64_t round, int thread, const PortfolioSituation& situation) {
  if (!situation.has_bound) {
    return (round + static_cast<std::uint64_t>(thread)) % 4 == 3 ? Engine::kBlocks : Engine::kTrees;
  }
  if (situation.uses_exact) {
    const bool improves = thread == 0 && round % 8 == 7;
    constexpr Engine kImprovements[] = {Engine::kTrees, Engine::kBlocks, Engine::kPart};
    return improves ? kImprovements[round / 8 % std::size(kImprovements)] : Engine::kExact;
  }
  constexpr Engine kRounds[] = {Engine::kDive,  Engine::kTrees, Engine::kBlocks, Engine::kBlocks,
                                Engine::kBound, Engine::kTrees, Engine::kBlocks, Engine::kBlocks,
                                Engine::kPart,  Engine::kTrees, Engine::kBlocks, Engine::kBlocks,
                                Engine::kBound, Engine::kTrees, Engine::kBlocks, Engine::kBlocks};
  constexpr Engine kSharedRounds[] = {Engine::kExact,  Engine::kBound, Engine::kTrees, Engine::kExact,
                                      Engine::kBlocks, Engine::kTrees, Engine::kExact, Engine::kBlocks,
                                      Engine::kExact,  Engine::kBound, Engine::kTrees, Engine::kExact,
                                      Engine::kBlocks, Engine::kPart,  Engine::kExact, Engine::kBlocks};
  const Engine engine =
      situation.shares_exact ? kSharedRounds[round % std::size(kSharedRounds)] : kRounds[round % std::size(kRounds)];
  if (engine == Engine::kBound && situation.is_bound_settled) return Engine::kPart;
  if (thread % 2 == 0 || (engine != Engine::kTrees && engine != Engine::kBlocks)) return engine;
  return engine == Engine::kTrees ? Engine::kBlocks : Engine::kTrees;
}

}  // namespace

Engine scheduled_engine(std::uint64_t round, int thread, const PortfolioSituation& situation) {
  const Engine engine = with_parts(round, thread, situation);
  if (engine != Engine::kPart || situation.searches_parts) return engine;
  return situation.uses_exact ? Engine::kTrees : Engine::kDive;
}

}  // namespace shardplan
