#include "tests/testing/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sfmamba {

std::string HttpGet(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: localhost\r\n\r\n");
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
          0 &&
      write(fd, request.data(), request.size()) ==
          static_cast<ssize_t>(request.size())) {
    char block[4096];
    for (ssize_t n; (n = read(fd, block, sizeof(block))) > 0;) {
      answer.append(block, n);
    }
  }
  close(fd);
  const size_t body = answer.find("\r\n\r\n");
  const bool ok = absl::StartsWith(answer, "HTTP/1.1 200") ||
                  absl::StartsWith(answer, "HTTP/1.0 200");
  return ok && body != std::string::npos ? answer.substr(body + 4) : "";
}

std::map<std::string, double> Samples(const std::string& exposition) {
  std::map<std::string, double> samples;
  for (absl::string_view line : absl::StrSplit(exposition, '\n')) {
    const size_t space = line.rfind(' ');
    double value = 0;
    if (line.empty() || line[0] == '#' || space == line.npos ||
        !absl::SimpleAtod(line.substr(space + 1), &value)) {
      continue;
    }
    samples[std::string(line.substr(0, space))] = value;
  }
  return samples;
}

double SumOf(const std::map<std::string, double>& samples,
             const std::string& name,
             const std::initializer_list<std::string>& labels) {
  double sum = 0;
  for (const auto& [key, value] : samples) {
    if (key != name && !absl::StartsWith(key, name + "{")) continue;
    bool all = true;
    for (const std::string& label : labels) {
      all &= absl::StrContains(key, label);
    }
    if (all) sum += value;
  }
  return sum;
}

}  // namespace sfmamba
