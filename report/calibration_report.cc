#include "report/calibration_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/cluster/quantity.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostResiduals = 12;

/// Modelled / measured - 1.
double relative_error(const Residual& residual) {
  return static_cast<double>(residual.modelled) / static_cast<double>(residual.measured) - 1;
}

double magnitude(double value) { return value < 0 ? -value : value; }

/// Three digits are enough to compare times.
std::string readable_time(Picoseconds time) {
  const double us = static_cast<double>(time) / 1e6;
  return us < 1000 ? fmt::format("{:.3g} us", us) : fmt::format("{:.4g} ms", us / 1000);
}

}  // namespace

std::string calibration_report(const Calibration& calibration) {
  std::string text = fmt::format("{:24} {:>14} {:>14}\n", "constant", "before", "fitted");
  for (const FittedConstant& constant : calibration.constants) {
    text += fmt::format("{:24} {:>14} {:>14}{}\n", constant.name, constant.before, constant.after,
                        constant.is_at_limit ? "   above the peak in the file" : "");
  }
  double sum = 0, sign = 0;
  std::vector<Residual> worst = calibration.residuals;
  for (const Residual& residual : worst) {
    sum += magnitude(relative_error(residual));
    sign += relative_error(residual);
  }
  std::stable_sort(worst.begin(), worst.end(), [](const Residual& a, const Residual& b) {
    return magnitude(relative_error(a)) > magnitude(relative_error(b));
  });
  const auto count = static_cast<double>(std::max<std::size_t>(1, worst.size()));
  text += fmt::format("\n{} measurements: mean absolute deviation {:.1f} %, mean deviation {:+.1f} %\n\n", worst.size(),
                      100 * sum / count, 100 * sign / count);
  text += fmt::format("{:>10} {:>10} {:>8}  {}\n", "measured", "fitted", "off, %", "worst first");
  for (std::size_t i = 0; i < std::min(worst.size(), kMostResiduals); ++i) {
    text += fmt::format("{:>10} {:>10} {:>+8.1f}  {}\n", readable_time(worst[i].measured),
                        readable_time(worst[i].modelled), 100 * relative_error(worst[i]), worst[i].what);
  }
  if (worst.size() > kMostResiduals) text += fmt::format("{:>30}  {} more\n", "", worst.size() - kMostResiduals);
  return text;
}

}  // namespace shardplan
