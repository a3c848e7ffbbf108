#ifndef SFMAMBA_TESTS_CLIENT_COMMANDS_TESTING_H_
#define SFMAMBA_TESTS_CLIENT_COMMANDS_TESTING_H_

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "gtest/gtest.h"

namespace sfmamba::client {

using Command = int (*)(const std::vector<std::string>&, const Console&);

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

inline Outcome Invoke(Command command,
                      const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int exit_code = command(arguments, Console{out, err});
  return {exit_code, out.str(), err.str()};
}

// Writes a file to the test's folder and returns its path.
inline std::string WriteFile(const std::string& name,
                             const std::string& bytes) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace sfmamba::client

#endif  // SFMAMBA_TESTS_CLIENT_COMMANDS_TESTING_H_
