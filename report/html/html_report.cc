#include "report/html/html_report.h"

#include <fmt/format.h>

#include <cmath>

#include "model/model_source.h"
#include "report/html/page_data.h"
#include "report/metrics/plan_metrics.h"

namespace shardplan {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// JSON for a script element; '<' is escaped so that it cannot end the element.
std::string in_script(const Json& data) {
  std::string result;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

/// The operators on a page without scripts.
std::string static_table(const Json& plan) {
  std::string text = "<table><tr><th>operator<th>type<th>copies<th>strategy<th>result</tr>\n";
  for (const Json& op : plan["ops"]) {
    const std::string layout = op["out"].empty() ? "" : op["out"][0][2].get<std::string>();
    text += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>\n", escaped(op["n"].get<std::string>()),
                        escaped(op["t"].get<std::string>()), op["c"].get<std::size_t>(),
                        escaped(op["s"].get<std::string>()), escaped(layout));
  }
  return text + "</table>\n";
}

/// A number, null if work is repeated, or "inf" if nothing is communicated.
Json ratio_data(const StepTime& time) {
  const std::optional<double> value = ratio(time);
  if (!value) return Json();
  return std::isfinite(*value) ? Json(*value) : Json("inf");
}

Json row_data(const ComparedPlan& row) {
  return {row.name,
          row.objective,
          row.time.step(),
          row.time.computation,
          row.time.communication,
          row.time.repeated,
          row.peak,
          ratio_data(row.time),
          row.gap ? Json(100 * *row.gap) : Json(),
          row.fits};
}

}  // namespace

std::string html_report(const std::vector<HtmlPlan>& plans, const std::vector<ComparedPlan>& rows,
                        const std::string& text) {
  const Plan& first = *plans.front().plan;
  Json data;
  data["model"] = first.graph->name();
  data["training"] = first.graph->is_training();
  data["cluster"] = first.cluster.name;
  data["devices"] = first.cluster.num_devices();
  data["mesh"] = first.mesh.to_string();
  data["file"] = first.model->source ? first.model->source->file() : "";
  data["rows"] = Json::array();
  for (const ComparedPlan& row : rows) data["rows"].push_back(row_data(row));
  data["plans"] = Json::array();
  for (const HtmlPlan& plan : plans) data["plans"].push_back(page_data(*plan.plan, plan.name, plan.decisions));

  const std::string title = escaped(fmt::format("{} on {}", first.graph->name(), first.cluster.name));
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src "
      "'unsafe-inline'; img-src data:\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n", title, kPageStyle);
  page += fmt::format("<noscript><main><h1>{}</h1><pre>{}</pre>\n{}</main></noscript>\n", title, escaped(text),
                      static_table(data["plans"][0]));
  page += fmt::format("<template id=\"text\"><pre>{}</pre></template>\n", escaped(text));
  page += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", in_script(data));
  page += fmt::format("<script>\n{}</script>\n</body>\n</html>\n", kPageScript);
  return page;
}

}  // namespace shardplan
