#include "server/settings/settings_page.h"

#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(SettingsPageTest, TheCommittedPageIsTheGeneratedOne) {
  std::ifstream file("docs/settings.md");
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == SettingsPage())
      << "docs/settings.md is not what config.proto says. Write it anew:\n"
         "  bazel run //server/settings:print_settings_page > docs/settings.md";
}

TEST(SettingsPageTest, NestedSettingsStandUnderTheirGroup) {
  const std::string page = SettingsPage();
  for (const char* line :
       {"\n| `port` | 8001 | 0 to 65535 | gRPC port; 0: any free one. |\n",
        "\n### `detector`\n", "\n| `box_stds.values` | | above 0 | Four",
        "\n- `BF16`: Computed natively"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace sfmamba::server
