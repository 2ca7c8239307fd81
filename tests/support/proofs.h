#pragma once

#include <string>

#include "simulator/proof/prove.h"

namespace shardplan {

/// "proven", or why it could not be tried, or the first value that differs.
inline std::string outcome(const Proof& proof) {
  if (!proof.shrinking.refusal.empty()) return proof.shrinking.refusal;
  if (!proof.validation.first_wrong) return "proven";
  const FirstWrong& wrong = *proof.validation.first_wrong;
  return wrong.tensor + " made by " + wrong.instruction + ": " + wrong.looks_like;
}

}  // namespace shardplan
