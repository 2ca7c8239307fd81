# Writes OUTPUT, a source with the texts of the files STYLE and SCRIPT.
file(READ "${STYLE}" style)
file(READ "${SCRIPT}" script)
file(WRITE "${OUTPUT}" "// Made from report/html by report/html/embed_page.cmake.
#include \"report/html/html_report.h\"

namespace shardplan {

const char* const kPageStyle = R\"STYLE(${style})STYLE\";
const char* const kPageScript = R\"SCRIPT(${script})SCRIPT\";

}  // namespace shardplan
")
