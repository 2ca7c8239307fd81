#include "cli/own_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace shardplan {
namespace {

constexpr char kTunables[] = "GLIBC_TUNABLES";
constexpr char kLargePages[] = "glibc.malloc.hugetlb=1";  // transparent huge pages by madvise
constexpr int kMebi = 1 << 20;

void restart_with_large_pages(char** argv) {
  if (std::getenv(kTunables) != nullptr) return;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || setenv(kTunables, kLargePages, 1) != 0) return;
  execv(program.c_str(), argv);  // if that fails, the program goes on with small pages
}

}  // namespace

void set_up_memory(char** argv) {
  restart_with_large_pages(argv);
  mallopt(M_MMAP_THRESHOLD, 64 * kMebi);
  mallopt(M_TRIM_THRESHOLD, 256 * kMebi);
  mallopt(M_TOP_PAD, 64 * kMebi);
}

void give_back_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 * kMebi);
  mallopt(M_TRIM_THRESHOLD, 16 * kMebi);
  mallopt(M_TOP_PAD, 16 * kMebi);
}

}  // namespace shardplan
