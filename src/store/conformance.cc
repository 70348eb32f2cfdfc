#include "store/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "store/testing/conformance_harness.h"

namespace objectcache::store {
namespace {

using conformance::Case;

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part : {conformance::object_cases(), conformance::listing_cases(),
                           conformance::progress_cases(), conformance::refusal_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

/// What all cases of one registration share.
struct Registration {
  StoreFactory factory;
  ConformanceOptions options;
};

class ConformanceTest : public testing::Test {
 public:
  ConformanceTest(std::shared_ptr<const Registration> registration, Case test_case)
      : registration_(std::move(registration)), case_(test_case) {}

  void TestBody() override {
    if (registration_->options.deviations.contains(std::string(case_.name))) {
      GTEST_SKIP() << "declared deviation: " << case_.name;
    }
    const auto subject = registration_->factory();
    if (HasFatalFailure()) return;
    if (subject == nullptr) GTEST_SKIP() << "there is no store to test";
    conformance::Harness harness(*subject, registration_->options);
    case_.run(harness);
    // A second completion, or a late on_bytes, would come now.
    harness.settle(std::chrono::milliseconds(5));
  }

 private:
  const std::shared_ptr<const Registration> registration_;
  const Case case_;
};

}  // namespace

bool register_conformance(std::string name, StoreFactory factory, ConformanceOptions options) {
  const auto cases = all_cases();
  for (const std::string& deviation : options.deviations) {
    // A deviation that names nothing would hide a renamed case.
    if (std::ranges::find(cases, deviation, &Case::name) == cases.end()) {
      std::fprintf(stderr, "%s declares an unknown deviation: %s\n", name.c_str(),
                   deviation.c_str());
      std::abort();
    }
  }
  const auto registration =
      std::make_shared<const Registration>(std::move(factory), std::move(options));
  for (const Case& test_case : cases) {
    testing::RegisterTest(name.c_str(), std::string(test_case.name).c_str(), nullptr, nullptr,
                          __FILE__, __LINE__, [registration, test_case]() -> ConformanceTest* {
                            return new ConformanceTest(registration, test_case);
                          });
  }
  return true;
}

std::vector<std::string_view> conformance_cases() {
  std::vector<std::string_view> names;
  for (const Case& test_case : all_cases()) names.push_back(test_case.name);
  return names;
}

}  // namespace objectcache::store
