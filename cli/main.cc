#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app("shardplan: how should every tensor of a model be laid out on a cluster?");
  app.require_subcommand(0, 1);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
