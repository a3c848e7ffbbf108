#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/rest/prediction_body.h"

namespace sfmamba::rest {
namespace {

constexpr char kType[] = "multipart/form-data; boundary=b";

std::string Part(const std::string& name, const std::string& content) {
  return absl::StrCat("--b\r\nContent-Disposition: form-data; name=\"", name,
                      "\"\r\n\r\n", content, "\r\n");
}

// Returns "name=content" for each part of the form.
std::vector<std::string> Parts(const std::string& body,
                               const std::string& type = kType) {
  const auto parts = FindParts(type, body);
  EXPECT_TRUE(parts.ok()) << parts.status();
  std::vector<std::string> texts;
  if (!parts.ok()) return texts;
  for (const FormPart& part : *parts) {
    texts.push_back(absl::StrCat(part.name, part.has_file_name ? "@" : "=",
                                 body.substr(part.begin, part.size)));
  }
  return texts;
}

void ExpectRefused(const std::string& body, const std::string& part,
                   const std::string& type = kType) {
  const absl::Status status = FindParts(type, body).status();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "MALFORMED_MESSAGE") << body;
  EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
}

using List = std::vector<std::string>;

TEST(FormDataTest, FindsPartsInOrder) {
  EXPECT_EQ(Parts(Part("a", "1") + Part("", "") + Part("c", "\r\n--\r\n-") +
                  "--b--\r\n"),
            List({"a=1", "=", "c=\r\n--\r\n-"}));
  EXPECT_EQ(Parts("--b--"), List());
  EXPECT_EQ(Parts("before\r\n" + Part("a", "1") + "--b--after"), List({"a=1"}));
  EXPECT_EQ(Parts("before\r\n--b--"), List());
}

TEST(FormDataTest, ReadsHeadsAsClientsWriteThem) {
  const std::string heads[] = {
      "content-disposition:form-data;name=a; filename=x",
      "Content-Type: image/png\r\nContent-Disposition: form-data; name=\"a\"; "
      "filename=\"x; \\\"y.png\"\r\nX: y",
      "Content-Disposition: form-data; filename=\"\"; name=\"a\""};
  for (const std::string& head : heads) {
    EXPECT_EQ(Parts("--b  \r\n" + head + "\r\n\r\n1\r\n--b--"), List({"a@1"}))
        << head;
  }
  const std::string body =
      "--a'()+_,-./:=? b\r\nContent-Disposition: "
      "form-data; name=a\r\n\r\n1\r\n"
      "--a'()+_,-./:=? b--";
  EXPECT_EQ(
      Parts(body,
            "Multipart/Form-Data; charset=x; Boundary=\"a'()+_,-./:=? b\""),
      List({"a=1"}));
}

TEST(FormDataTest, RefusesFormsThatAreCutOff) {
  const std::string whole = Part("a", "1") + Part("b", "2") + "--b--";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(FindParts(kType, whole.substr(0, size)).ok()) << size;
  }
  ExpectRefused(Part("a", "1"), "form: ");
  ExpectRefused(Part("a", "1").substr(0, 50), "does not end");
}

TEST(FormDataTest, RefusesWhatHasNoBoundary) {
  for (const char* type :
       {"multipart/form-data", "multipart/form-data; boundary",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\""}) {
    ExpectRefused(Part("a", "1") + "--b--", "got a boundary of 0 bytes", type);
  }
  ExpectRefused("", "of 71 bytes",
                "multipart/form-data; boundary=" + std::string(71, 'b'));
  ExpectRefused("", "no boundary in the body");
  ExpectRefused("a\r\n--c--", "no boundary in the body");
}

TEST(FormDataTest, TheBoundaryIsNotWithinAPart) {
  ExpectRefused(Part("a", "1\r\n--bb") + "--b--", "no line of its own");
  EXPECT_EQ(Parts(Part("a", "--b\n--b") + "--b--"), List({"a=--b\n--b"}));
}

TEST(FormDataTest, RefusesPartsWithoutAName) {
  for (const char* head : {"", "Content-Type: text/plain\r\n\r\n",
                           "Content-Disposition: form-data\r\n\r\n"}) {
    ExpectRefused(absl::StrCat("--b\r\n", head, "1\r\n--b--"),
                  "without a name");
  }
  ExpectRefused("--b\r\nA: " + std::string(5000, 'x') + Part("a", "1"),
                "without a name");
}

TEST(FormDataTest, HostileFormsTakeLittle) {
  std::string many;
  for (size_t i = 0; i <= kMostParts; ++i) many += Part("a", "");
  ExpectRefused(many + "--b--", "more than 2000 parts");
  // The body repeats a text that is almost a delimiter.
  const std::string boundary(70, 'x');
  const std::string almost = "\r\n--" + boundary.substr(1);
  std::string body = absl::StrCat(
      "--", boundary, "\r\nContent-Disposition: form-data; name=a\r\n\r\n");
  while (body.size() < 20 << 20) body += almost;
  ExpectRefused(body, "does not end",
                "multipart/form-data; boundary=" + boundary);
}

}  // namespace
}  // namespace sfmamba::rest
