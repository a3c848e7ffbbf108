#ifndef SFMAMBA_SERVER_SETTINGS_SETTINGS_PAGE_H_
#define SFMAMBA_SERVER_SETTINGS_SETTINGS_PAGE_H_

#include <string>

namespace sfmamba::server {

// docs/settings.md: every setting of the server and of a model, in Markdown.
std::string SettingsPage();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_SETTINGS_PAGE_H_
