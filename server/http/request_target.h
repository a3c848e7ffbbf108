#ifndef SFMAMBA_SERVER_HTTP_REQUEST_TARGET_H_
#define SFMAMBA_SERVER_HTTP_REQUEST_TARGET_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::http {

// Takes a request's target apart: "/a%20b?x=1&y=c+d" is the path "/a b" and x =
// "1", y = "c d". "http://host/a" is the path "/a". False if it is empty, has
// other characters than visible ASCII, or stands for control characters.
bool ParseTarget(absl::string_view target, std::string* path,
                 std::multimap<std::string, std::string>* query);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_REQUEST_TARGET_H_
