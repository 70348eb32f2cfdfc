#pragma once

#include <memory>
#include <string>

#include "s3/xml.h"
#include "store/object_store.h"
#include "store/s3/call.h"

namespace objectcache::store_s3 {

/// One page of a listing (ListObjectsV2). Goes on by itself, within the deadline, where a server's
/// page holds nothing that the caller does not know already.
///
/// Threads: owner thread of the lane's loop.
class ListOperation final : public store::Operation,
                            public std::enable_shared_from_this<ListOperation> {
 public:
  static std::shared_ptr<ListOperation> begin(Lane& lane, store::ListRequest request,
                                              store::ListCompletion done);
  void cancel() override {
    if (call_) call_->cancel();
  }

 private:
  ListOperation(Lane& lane, store::ListRequest request, store::ListCompletion done)
      : lane_(lane), request_(std::move(request)), done_(std::move(done)) {}

  void ask(const std::string& continuation_token);
  void on_answer(Result<CallAnswer> answer);
  /// Without the store's prefix, and without what is not greater than start_after.
  [[nodiscard]] store::ListPage page_of(s3::ListResult& result) const;
  void finish(Result<store::ListPage> result);

  Lane& lane_;
  const store::ListRequest request_;
  store::ListCompletion done_;
  std::uint32_t pages_ = 0;
  std::shared_ptr<Call> call_;
};

}  // namespace objectcache::store_s3
