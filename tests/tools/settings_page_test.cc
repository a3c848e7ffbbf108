#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace sfmamba {
namespace {

std::string SettingsPage() {
  std::string page;
  std::FILE* const output = popen("tools/settings_page", "r");
  for (int c = std::getc(output); c != EOF; c = std::getc(output)) {
    page.push_back(static_cast<char>(c));
  }
  EXPECT_EQ(pclose(output), 0);
  return page;
}

TEST(SettingsPageTest, TheCommittedPageIsTheGeneratedOne) {
  std::ifstream file("docs/settings.md");
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == SettingsPage())
      << "docs/settings.md is not what config.proto says. Write it anew:\n"
         "  bazel run //tools:settings_page > docs/settings.md";
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
}  // namespace sfmamba
