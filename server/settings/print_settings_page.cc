// Prints docs/settings.md.

#include <cstdio>

#include "server/settings/settings_page.h"

int main() {
  std::fputs(sfmamba::server::SettingsPage().c_str(), stdout);
  return 0;
}
