// The page in a real browser: headless Chromium loads it, an appended script presses keys and reads what is shown, and
// everything that goes wrong in the page (errors, console lines, requests, violations of its own policy) is listed.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>

#include "base/write_files.h"
#include "report/html/html_report.h"
#include "tests/support/files.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

constexpr std::string_view kListen = R"(<script>
window.faults = [];
addEventListener("error", (event) => faults.push("error: " + event.message));
addEventListener("unhandledrejection", (event) => faults.push("rejected: " + event.reason));
document.addEventListener("securitypolicyviolation", (event) => faults.push("refused: " + event.blockedURI));
for (const level of ["error", "warn", "log", "info"]) console[level] = (...words) => faults.push(level + ": " + words.join(" "));
</script>)";

/// Presses keys and writes the results into the page, which --dump-dom prints.
constexpr std::string_view kDrive = R"(<script>
const press = (key, target = document.body) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const check = (condition, what) => { if (!condition) faults.push("not so: " + what); };
const graph = () => [...document.querySelectorAll("#graph .node")];
check(graph().length > 2, "the graph has rows");
check(document.querySelectorAll("h1").length === 1, "one h1");
press("2"); check(document.activeElement.textContent === "Graph", "2 goes to the graph");
press("/"); check(document.activeElement.id === "search", "/ goes to the search"); document.activeElement.blur();
const before = graph().length;
press("b"); check(graph().length > before, "b shows the backward operators"); press("b");
const block = graph().find((node) => node.getAttribute("aria-expanded") === "false");
if (block) { press("Enter", block); check(graph().length > before, "Enter opens a block"); }
press("n"); check(document.querySelector("#details h3"), "n selects a collective"); press("Escape");
check(!document.querySelector("#details h3"), "Escape clears the selection");
const op = graph().find((node) => !node.hasAttribute("aria-expanded") && !node.classList.contains("move"));
press("Enter", op); check(location.hash.includes("op="), "a selection is in the address");
press("ArrowDown", graph()[0]); check(document.activeElement === graph()[1], "arrows move in the graph");
press("?"); check(document.querySelector("[role=dialog]"), "? lists the keys"); press("Escape");
check(!document.querySelector("[role=dialog]"), "Escape closes the list");
document.querySelector("#timeline").focus(); press("+", document.activeElement); press("-", document.activeElement);
const line = document.querySelector("#timeline"), rows = () => document.querySelectorAll("#s6 tbody tr").length, allRows = rows();
for (const key of ["+", "+", "+", "+", "ArrowRight", "s"]) press(key, line);
check(location.hash.includes("span="), "a span of the timeline is in the address");
check(rows() < allRows && rows() > 0, "the tables show what runs in the span: " + rows() + " of " + allRows);
check(document.querySelector(".brushed").textContent.includes("run"), "the span is said in words");
press("s", line); check(rows() === allRows && !location.hash.includes("span="), "s again shows all");
press("s", line); document.querySelector("#s6 .brushed button").click(); check(rows() === allRows, "a button shows all");
for (const key of ["-", "-", "-", "-"]) press(key, line);
const box = line.getBoundingClientRect(), drag = (kind, x) => line.dispatchEvent(new PointerEvent(kind, { clientX: box.left + x, buttons: 1, shiftKey: true }));
drag("pointerdown", 90); drag("pointermove", 120); check(location.hash.includes("span=") && rows() < allRows, "Shift and drag choose a span");
press("Escape"); check(rows() === allRows, "Escape shows all");
const shown = document.querySelector("header [aria-pressed=true]").textContent;
press("l"); press("1");
const plans = document.querySelectorAll("header [aria-pressed]").length;
check(plans < 2 || document.querySelector("header [aria-pressed=true]").textContent !== shown, "l 1 shows the second plan");
for (const button of document.querySelectorAll("th button")) button.click();
for (const name of ["light", "dark"]) {
  [...document.querySelectorAll("header button")].find((button) => button.textContent === "light / dark").click();
  const style = getComputedStyle(document.body);
  check(style.color !== style.backgroundColor, "text differs from the page");
}
check(performance.getEntriesByType("resource").length === 0, "no requests");
for (const entry of document.querySelectorAll("a, button, [tabindex='0'], input")) {
  check(entry.textContent || entry.getAttribute("aria-label"), "a name for " + entry.outerHTML.slice(0, 60));
}
document.title = "faults: " + JSON.stringify(faults);
</script>)";

std::string with_scripts(std::string page) {
  page.insert(page.find("<body>") + 6, kListen);
  page.insert(page.rfind("</body>"), kDrive);
  return page;
}

/// The output of --dump-dom for the page after the scripts ran.
std::string dump_of(const std::string& page, const std::string& options) {
  const TemporaryFolder folder;
  write_file(folder.at("page.html"), with_scripts(page));
  const std::string command =
      "cd " + folder.path() +
      " && HOME=$PWD timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
      "--user-data-dir=$PWD/profile " +
      options + " --dump-dom file://$PWD/page.html >dump.html 2>/dev/null";
  const int status = std::system(command.c_str());
  return status == 0 ? content_of(folder.at("dump.html")) : "";
}

bool has_chromium() { return std::system("chromium --version >/dev/null 2>&1") == 0; }

TEST(PageInBrowserTest, LoadsWithoutFaultsAndIsUsedByKeys) {
  if (!has_chromium()) GTEST_SKIP() << "there is no chromium (Debian's package): the page is not opened in a browser";
  const Plan plan = tiny_plan(), other = block_plan();
  const std::string one = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary");
  const std::string two = html_report({{"level 0", &plan, {}}, {"level 1", &other, {}}},
                                      {compared("level 0", plan), compared("level 1", other)}, "compared");
  expect_has(dump_of(one, ""), "<title>faults: []</title>");
  expect_has(dump_of(two, "--blink-settings=preferredColorScheme=0"), "<title>faults: []</title>");
}

/// The driver itself detects errors: a page whose script throws is rejected.
TEST(PageInBrowserTest, FaultsOfAPageAreSeen) {
  if (!has_chromium()) GTEST_SKIP() << "there is no chromium (Debian's package): the page is not opened in a browser";
  const Plan plan = tiny_plan();
  std::string page = html_report({{"plan", &plan, {}}}, {compared("plan", plan)}, "the summary");
  page.insert(page.rfind("</body>"), "<script>fetch('https://example.org/'); nothing.at.all;</script>");
  const std::string dump = dump_of(page, "");
  expect_has(dump, "nothing is not defined");
  expect_has(dump, "refused: ");
}

}  // namespace
}  // namespace shardplan
