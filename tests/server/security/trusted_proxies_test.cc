#include "server/security/trusted_proxies.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace sfmamba::security {
namespace {

constexpr char kProxy[] = "ipv4:10.1.2.3:5000";

TrustedProxies::Client Find(const std::vector<std::string>& forwarded,
                            const std::string& peer = kProxy) {
  return TrustedProxies::Parse({"10.0.0.0/8", "fd00::/8", "192.0.2.1"})
      ->ClientOf(peer, forwarded);
}

std::string Name(const std::vector<std::string>& forwarded,
                 const std::string& peer = kProxy) {
  const TrustedProxies::Client client = Find(forwarded, peer);
  EXPECT_FALSE(client.malformed);
  return client.name;
}

TEST(TrustedProxiesTest, AProxyNamesItsCaller) {
  EXPECT_EQ(Name({"198.51.100.7"}), "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"198.51.100.7"}, "ipv4:192.0.2.1:1"), "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"198.51.100.7"}, "ipv6:%5B::ffff:10.0.0.1%5D:1"),
            "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"198.51.100.7"}, "ipv6:%5Bfd12::1%5D:1"),
            "ipv4:198.51.100.7");
}

TEST(TrustedProxiesTest, AnybodyElseIsTheClient) {
  EXPECT_EQ(Name({"198.51.100.7"}, "ipv4:11.0.0.1:1"), "ipv4:11.0.0.1");
  EXPECT_EQ(Name({"198.51.100.7"}, "ipv4:192.0.2.2:1"), "ipv4:192.0.2.2");
  EXPECT_EQ(Name({"nonsense"}, "ipv4:192.0.2.2:1"), "ipv4:192.0.2.2");
  EXPECT_EQ(Name({"198.51.100.7"}, "ipv6:%5Bfe00::1%5D:1"), "ipv6:fe00::/64");
  EXPECT_EQ(Name({"198.51.100.7"}, "unix:"), "unix:");
  EXPECT_EQ(TrustedProxies().ClientOf(kProxy, {"198.51.100.7"}).name,
            "ipv4:10.1.2.3");
}

TEST(TrustedProxiesTest, TheLastAddressThatIsNotTrustedIsTheClient) {
  EXPECT_EQ(Name({"203.0.113.9, 198.51.100.7"}), "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"203.0.113.9, 198.51.100.7 ,10.9.9.9, fd00::5"}),
            "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"203.0.113.9", "198.51.100.7", "10.9.9.9"}),
            "ipv4:198.51.100.7")
      << "several headers are one list";
  EXPECT_EQ(Name({"nonsense, 198.51.100.7"}), "ipv4:198.51.100.7")
      << "the client's own words are not read";
  EXPECT_EQ(Name({"198.51.100.7,,"}), "ipv4:198.51.100.7");
}

TEST(TrustedProxiesTest, TheProxyIsTheClientIfItNamesNobodyElse) {
  EXPECT_EQ(Name({}), "ipv4:10.1.2.3");
  EXPECT_EQ(Name({""}), "ipv4:10.1.2.3");
  EXPECT_EQ(Name({"10.4.4.4, fd00::5"}), "ipv4:10.1.2.3");
}

TEST(TrustedProxiesTest, ReadsEveryFormOfAnAddress) {
  EXPECT_EQ(Name({"198.51.100.7:4711"}), "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"::ffff:198.51.100.7"}), "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"[::ffff:198.51.100.7]:80"}), "ipv4:198.51.100.7");
  EXPECT_EQ(Name({"2001:db8:1:2:3::4"}), "ipv6:2001:db8:1:2::/64");
  EXPECT_EQ(Name({"[2001:DB8:1:2::4]"}), "ipv6:2001:db8:1:2::/64");
  EXPECT_EQ(Name({"[2001:db8:1:2::4]:443"}), "ipv6:2001:db8:1:2::/64");
  EXPECT_EQ(Name({"198.51.100.7, [::ffff:10.0.0.9]:80"}), "ipv4:198.51.100.7")
      << "IPv4 within IPv6 is trusted as IPv4";
}

TEST(TrustedProxiesTest, AMalformedAddressIsNotTrusted) {
  for (const char* hop :
       {"unknown", "198.51.100", "198.51.100.7:", "198.51.100.7:x",
        "198.51.100.7:70000", "198.51.100.7 1", "[2001:db8::1", "2001:db8::1]",
        "[2001:db8::1]443", "[2001:db8::1]:", "[198.51.100.7]", "fe80::1%eth0",
        "[]", ":", "198.51.100.007.1", "\"198.51.100.7\"", "0x7f.1"}) {
    for (const std::string& forwarded :
         {std::string(hop), std::string("198.51.100.7, ") + hop,
          std::string(hop) + ", 10.0.0.4"}) {
      const TrustedProxies::Client client = Find({forwarded});
      EXPECT_TRUE(client.malformed) << forwarded;
      EXPECT_EQ(client.name, "ipv4:10.1.2.3") << forwarded;
    }
  }
  const TrustedProxies::Client nul = Find({std::string("198.51.100.7\0x", 14)});
  EXPECT_TRUE(nul.malformed);
}

TEST(TrustedProxiesTest, NetworksEndAtAnyBit) {
  // An IPv4 peer reports an IPv6 client, and an IPv6 peer an IPv4 client. If
  // the peer is trusted, the client gets the name of the reported address.
  const auto is_trusted = [](const std::string& network,
                             const std::string& peer) {
    const bool is_v4 = absl::StartsWith(peer, "ipv4:");
    return TrustedProxies::Parse({network})
               ->ClientOf(peer, {is_v4 ? "fe80::9" : "9.9.9.9"})
               .name == (is_v4 ? "ipv6:fe80::/64" : "ipv4:9.9.9.9");
  };
  EXPECT_TRUE(is_trusted("172.16.0.0/12", "ipv4:172.31.255.255:1"));
  EXPECT_FALSE(is_trusted("172.16.0.0/12", "ipv4:172.32.0.0:1"));
  EXPECT_TRUE(is_trusted("172.17.1.1/12", "ipv4:172.16.0.1:1"));
  EXPECT_TRUE(is_trusted("::ffff:172.16.0.0/108", "ipv4:172.31.0.1:1"));
  EXPECT_TRUE(is_trusted("0.0.0.0/0", "ipv4:172.32.0.0:1"));
  EXPECT_FALSE(is_trusted("0.0.0.0/0", "ipv6:%5B2001::1%5D:1"));
  EXPECT_FALSE(is_trusted("::/0", "ipv4:172.32.0.0:1"));
  EXPECT_TRUE(is_trusted("::/0", "ipv6:%5B2001::1%5D:1"));
  EXPECT_TRUE(is_trusted("2001:db8::/33", "ipv6:%5B2001:db8:7fff::1%5D:1"));
  EXPECT_FALSE(is_trusted("2001:db8::/33", "ipv6:%5B2001:db8:8000::1%5D:1"));
}

TEST(TrustedProxiesTest, NamesWhatIsNoNetwork) {
  for (const char* network :
       {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "fd00::/129",
        "proxy.example.org", "10.0.0.0/8/8", "[fd00::1]"}) {
    const absl::Status status = TrustedProxies::Parse({network}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << network;
    EXPECT_TRUE(absl::StrContains(status.message(), "trusted_proxies"))
        << status;
    EXPECT_TRUE(absl::StrContains(status.message(), network)) << status;
  }
}

}  // namespace
}  // namespace sfmamba::security
