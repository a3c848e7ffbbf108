// Prints all files of the console as the server would send them. The stand-in
// server of a test, which is not written in C++, serves them. The output is a
// JSON list of objects {path, headers, body}. The bodies are in base64.

#include <iostream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/rest/console/console_files.h"
#include "server/rest/console/console_page.h"

int main() {
  nlohmann::json files = nlohmann::json::array();
  const auto print = [&files](const std::string& path) {
    sfmamba::http::HttpRequest request;
    request.method = "GET";
    request.path = path;
    const sfmamba::http::HttpResponse response =
        sfmamba::rest::ConsolePage(request);
    files.push_back({{"path", path},
                     {"headers", response.headers},
                     {"body", absl::Base64Escape(response.body.at(0))}});
  };
  print("/");
  for (const auto& file : sfmamba::rest::ConsoleFiles()) {
    print(absl::StrCat("/console/", file.name));
  }
  std::cout << files.dump() << "\n";
  return 0;
}
