// The `sfmamba` command. Its first argument is the verb to run, such as
// classify.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/closest_name.h"
#include "base/version.h"
#include "client/commands/admin/admin_command.h"
#include "client/commands/bench/bench_command.h"
#include "client/commands/classify_command.h"
#include "client/commands/command.h"
#include "client/commands/detect_command.h"
#include "client/commands/eval_command.h"
#include "client/commands/health_command.h"
#include "client/commands/models_command.h"
#include "client/commands/profile_command.h"
#include "client/commands/segment_command.h"
#include "client/commands/stream_command.h"

namespace sfmamba::client {
namespace {

struct Verb {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>& arguments, const Console& console);
};

constexpr Verb kVerbs[] = {
    {"classify", "name what pictures show", RunClassify},
    {"detect", "find objects: boxes, masks, annotated pictures", RunDetect},
    {"segment", "tell the class of each pixel, in colour", RunSegment},
    {"stream", "send pictures over one stream, as they come", RunStream},
    {"models", "list what the server serves", RunModels},
    {"profile", "tell how long a model's batches take", RunProfile},
    {"health", "exit 0 if the server is serving, else 1", RunHealth},
    {"admin", "change what the server serves: versions, labels, settings",
     RunAdmin},
    {"eval", "measure how right a model is on a labelled folder", RunEval},
    {"bench", "measure throughput and latency", RunBench},
};

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.push_back(verb.name);
  return names;
}

std::string Help() {
  std::string text =
      "sfmamba: a client of the SF-Mamba vision server\n\n"
      "usage: sfmamba VERB [ARGUMENT...] [flags]\n\nverbs:\n";
  for (const Verb& verb : kVerbs) {
    absl::StrAppendFormat(&text, "  %-9s %s\n", verb.name, verb.summary);
  }
  absl::StrAppend(
      &text,
      "  help      tell how a verb is used: sfmamba help VERB\n\n"
      "--version tells which one this is\n\n"
      "exit codes: 0 ok, 1 the server answered with an error, 2 wrong usage\n");
  return text;
}

int RunVerb(const std::string& name, const std::vector<std::string>& arguments,
            const Console& console) {
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb.run(arguments, console);
  }
  const std::string closest = base::ClosestName(name, VerbNames());
  return UsageError(
      absl::StrCat("no verb '", name, "'",
                   closest.empty() ? "; 'sfmamba help' lists them"
                                   : absl::StrCat(", did you mean ", closest)),
      console);
}

int Run(const std::vector<std::string>& arguments, const Console& console) {
  if (arguments.empty()) {
    console.err << Help();
    return kExitUsage;
  }
  const std::string& verb = arguments[0];
  if (verb == "--version" || verb == "version") {
    console.out << "sfmamba " << base::kVersion << "\n";
    return kExitOk;
  }
  if (verb != "help" && verb != "--help" && verb != "-h") {
    return RunVerb(verb, {arguments.begin() + 1, arguments.end()}, console);
  }
  if (arguments.size() > 1) return RunVerb(arguments[1], {"--help"}, console);
  console.out << Help();
  return kExitOk;
}

}  // namespace
}  // namespace sfmamba::client

int main(int argc, char** argv) {
  // The command reports errors itself, so gRPC need not write a log.
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  const sfmamba::client::Console console = {std::cout, std::cerr,
                                            isatty(STDERR_FILENO) == 1};
  const int exit_code = sfmamba::client::Run({argv + 1, argv + argc}, console);
  return sfmamba::client::FinishOutput(exit_code, console);
}
