#include "server/threads/thread_name.h"

#include <pthread.h>

#include <string>

namespace sfmamba::server {

void NameThisThread(absl::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

}  // namespace sfmamba::server
