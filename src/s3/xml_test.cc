#include "s3/xml.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace objectcache::s3 {
namespace {

// The example of ListObjectsV2 in S3's API reference, with a second page's fields.
constexpr std::string_view kListing = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name>
  <Prefix>photos/2006/</Prefix>
  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <KeyCount>2</KeyCount>
  <MaxKeys>1000</MaxKeys>
  <Delimiter>/</Delimiter>
  <IsTruncated>true</IsTruncated>
  <Contents>
    <Key>photos/2006/my &amp; image.jpg</Key>
    <LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag>
    <Size>434234</Size>
    <StorageClass>STANDARD</StorageClass>
    <Owner><ID>x</ID></Owner>
  </Contents>
  <CommonPrefixes><Prefix>photos/2006/February/</Prefix></CommonPrefixes>
  <CommonPrefixes><Prefix>photos/2006/January/</Prefix></CommonPrefixes>
</ListBucketResult>)";

TEST(ListResult, ReadsThePublishedExample) {
  const auto list = parse_list_result(kListing);
  ASSERT_TRUE(list.has_value()) << list.error().to_string();
  EXPECT_EQ(list->bucket, "bucket");
  EXPECT_EQ(list->prefix, "photos/2006/");
  EXPECT_EQ(list->delimiter, "/");
  EXPECT_TRUE(list->truncated);
  EXPECT_EQ(list->next_continuation_token, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
  EXPECT_EQ(list->max_keys, 1000U);
  ASSERT_EQ(list->objects.size(), 1U);
  EXPECT_EQ(list->objects[0].key, "photos/2006/my & image.jpg");
  EXPECT_EQ(list->objects[0].etag, "\"fba9dede5f27731c9771645a39863328\"");
  EXPECT_EQ(list->objects[0].size_bytes, 434234U);
  EXPECT_EQ(list->objects[0].modified, *parse_iso8601("2009-10-12T17:50:30Z"));
  ASSERT_EQ(list->common_prefixes.size(), 2U);
  EXPECT_EQ(list->common_prefixes[1], "photos/2006/January/");
}

TEST(ListResult, WhatIsWrittenIsRead) {
  ListResult list;
  list.bucket = "b";
  list.prefix = "a b/+%";
  list.delimiter = "/";
  list.start_after = "a b/+%0";
  list.next_continuation_token = "t<k>";
  list.truncated = true;
  list.max_keys = 7;
  list.objects.push_back({.key = "a b/+%1 <&\">",
                          .size_bytes = UINT64_MAX,
                          .etag = "\"e\"",
                          .modified = *parse_iso8601("2026-01-02T03:04:05.678Z")});
  list.objects.push_back({.key = " ", .size_bytes = 0, .etag = "", .modified = {}});
  list.objects.push_back({.key = "line\r\nend\ttab", .size_bytes = 1, .etag = "", .modified = {}});
  list.common_prefixes = {"a b/+%x/"};
  for (const KeyEncoding encoding : {KeyEncoding::kNone, KeyEncoding::kUrl}) {
    const std::string xml = write_list_result(list, encoding);
    const auto back = parse_list_result(xml);
    ASSERT_TRUE(back.has_value()) << back.error().to_string() << xml;
    EXPECT_EQ(back->prefix, list.prefix);
    EXPECT_EQ(back->start_after, list.start_after);
    EXPECT_EQ(back->next_continuation_token, list.next_continuation_token);
    EXPECT_EQ(back->max_keys, 7U);
    ASSERT_EQ(back->objects.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(back->objects[i].key, list.objects[i].key);
      EXPECT_EQ(back->objects[i].size_bytes, list.objects[i].size_bytes);
      EXPECT_EQ(back->objects[i].etag, list.objects[i].etag);
      EXPECT_EQ(back->objects[i].modified, list.objects[i].modified);
    }
    EXPECT_EQ(back->common_prefixes, list.common_prefixes);
  }
}

TEST(ListResult, UrlEncodedPlusIsASpace) {
  const auto list = parse_list_result(
      "<ListBucketResult><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>"
      "<Contents><Key>a+b%2Bc%20d</Key><Size>1</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->objects[0].key, "a b+c d");
}

TEST(ListResult, BadDocumentsAreRefused) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kListing);
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& xml :
       {std::string(), std::string("<html>503</html>"), std::string("\0\0", 2),
        std::string(kListing.substr(0, 500)), with("434234", "-1"), with("434234", ""),
        with("434234", "99999999999999999999"), with("2009-10-12", "yesterday"),
        with("<IsTruncated>true", "<IsTruncated>maybe"), with("photos/2006/my &amp; image.jpg", ""),
        with("<Delimiter>", "<EncodingType>url</EncodingType><Delimiter>%"),
        with("<ListBucketResult xmlns", "<Other xmlns")}) {
    const auto list = parse_list_result(xml);
    ASSERT_FALSE(list.has_value()) << xml;
    EXPECT_EQ(list.error().code, ErrorCode::kUnavailable);
  }
}

TEST(Xml, HostileDocumentsAreHarmless) {
  // Entities: refused with the DOCTYPE that would declare them.
  const auto laughs = parse_list_result(
      "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
      "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  ASSERT_FALSE(laughs.has_value());
  EXPECT_NE(laughs.error().message.find("DOCTYPE"), std::string::npos);

  std::string deep;
  for (int i = 0; i < 40'000; ++i) deep += "<a>";
  EXPECT_FALSE(parse_list_result(deep).has_value());
  for (int i = 0; i < 40'000; ++i) deep += "</a>";
  EXPECT_FALSE(parse_list_result(deep).has_value());

  std::string wide = "<ListBucketResult><IsTruncated>false</IsTruncated>";
  for (std::size_t i = 0; i < kXmlTagsMax; ++i) wide += "<a/>";
  const auto too_wide = parse_list_result(wide + "</ListBucketResult>");
  ASSERT_FALSE(too_wide.has_value());
  EXPECT_NE(too_wide.error().message.find("tags"), std::string::npos);

  EXPECT_FALSE(parse_list_result(std::string(kXmlBytesMax + 1, ' ')).has_value());
}

TEST(DeleteRequest, RoundTripsAndIsBounded) {
  DeleteRequest request{.keys = {"a", "b & c", " d"}, .quiet = true};
  const auto back = parse_delete_request(write_delete_request(request));
  ASSERT_TRUE(back.has_value()) << back.error().to_string();
  EXPECT_EQ(back->keys, request.keys);
  EXPECT_TRUE(back->quiet);
  request.keys.assign(kDeleteKeysMax, "k");
  request.quiet = false;
  ASSERT_TRUE(parse_delete_request(write_delete_request(request)).has_value());
  request.keys.emplace_back("k");
  EXPECT_EQ(parse_delete_request(write_delete_request(request)).error().code,
            ErrorCode::kInvalidArgument);
  for (const char* xml : {"", "<Delete/>", "<Delete><Object/></Delete>", "<Other/>", "<Delete>"}) {
    EXPECT_EQ(parse_delete_request(xml).error().code, ErrorCode::kInvalidArgument) << xml;
  }
}

TEST(DeleteResult, RoundTrips) {
  const DeleteResult result{.deleted = {"a", "b<"},
                            .failures = {{.key = "c", .code = "AccessDenied", .message = "no"}}};
  const auto back = parse_delete_result(write_delete_result(result));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->deleted, result.deleted);
  ASSERT_EQ(back->failures.size(), 1U);
  EXPECT_EQ(back->failures[0].key, "c");
  EXPECT_EQ(back->failures[0].code, "AccessDenied");
  EXPECT_EQ(back->failures[0].message, "no");
  EXPECT_TRUE(parse_delete_result("<DeleteResult/>").has_value());
  EXPECT_FALSE(parse_delete_result("<Error/>").has_value());
}

TEST(ErrorDocument, ReadsWhatServersSend) {
  const auto error = parse_error_document(
      "<?xml version=\"1.0\"?><Error><Code>PermanentRedirect</Code><Message>go there</Message>"
      "<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint><Region>eu-west-1</Region>"
      "<RequestId>tx01</RequestId></Error>");
  EXPECT_EQ(error.code, "PermanentRedirect");
  EXPECT_EQ(error.endpoint, "b.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(error.region, "eu-west-1");
  EXPECT_EQ(error.request_id, "tx01");
  EXPECT_EQ(parse_error_document("").code, "");
  EXPECT_EQ(parse_error_document("<html><h1>502</h1></html>").code, "");
  EXPECT_EQ(parse_error_document("upstream timed out").code, "");
  const auto back = parse_error_document(write_error_document(error));
  EXPECT_EQ(back.message, "go there");
  EXPECT_EQ(back.region, "eu-west-1");
}

}  // namespace
}  // namespace objectcache::s3
