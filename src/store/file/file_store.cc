#include "store/file/file_store.h"

#include <utility>

#include "base/url.h"
#include "store/file/file_call.h"
#include "store/file/file_get.h"
#include "store/file/file_put.h"
#include "store/file/object_names.h"
#include "store/file/object_tree.h"
#include "store/file/worker_pool.h"
#include "store/request_checks.h"

namespace objectcache::store {

Result<std::unique_ptr<FileStore>> FileStore::open(Options options) {
  if (options.directory.empty() || options.directory.contains('\0') || options.threads == 0 ||
      options.piece_bytes == 0) {
    return fail(ErrorCode::kInvalidArgument, "the directory, threads and piece_bytes must be given",
                "open store", "file:" + percent_encode(options.directory));
  }
  auto tree = ObjectTree::open({.root = options.directory,
                                .url = "file:" + percent_encode(options.directory),
                                .create_root = options.create_directory,
                                .fsync = options.fsync,
                                .min_free_bytes = options.min_free_bytes,
                                .stale_temp_age = options.stale_temp_age});
  if (!tree) return std::unexpected(std::move(tree.error()));
  return std::unique_ptr<FileStore>(new FileStore(std::move(options), std::move(*tree)));
}

FileStore::FileStore(Options options, std::shared_ptr<const ObjectTree> tree)
    : options_(std::move(options)),
      traits_{.url = "file:" + percent_encode(options_.directory),
              .durable_after_put = options_.fsync,
              .key_component_bytes_max = ObjectTree::kComponentBytesMax},
      tree_(std::move(tree)),
      pool_(std::make_shared<WorkerPool>(WorkerPool::Options{.threads_max = options_.threads,
                                                             .queued_max = options_.queued_max})) {}

FileStore::~FileStore() = default;

FileTransfer FileStore::transfer() const {
  return {
      .piece_bytes = options_.piece_bytes, .isolate = options_.isolate, .direct = options_.direct};
}

OperationHandle FileStore::get(EventLoop& loop, GetRequest request, GetCompletion done) {
  auto problem = file_key_problem(request.key);
  if (!problem) problem = get_problem(request);
  auto name = name_call("GET", traits_.url, request.key.text);
  auto call = std::make_shared<FileGet>(loop, std::move(name), tree_, pool_, transfer(),
                                        std::move(request), std::move(done));
  call->start(*pool_, std::move(problem));
  return call;
}

OperationHandle FileStore::put(EventLoop& loop, PutRequest request, PutCompletion done) {
  auto problem = file_key_problem(request.key);
  auto name = name_call("PUT", traits_.url, request.key.text);
  auto call = std::make_shared<FilePut>(loop, std::move(name), tree_, transfer(),
                                        std::move(request), std::move(done));
  call->start(*pool_, std::move(problem));
  return call;
}

template <class T, class Done, class Work>
OperationHandle FileStore::start_short(EventLoop& loop, std::string_view action,
                                       std::string_view key, TimePoint deadline,
                                       std::optional<std::string> problem, Done done, Work work) {
  auto call = std::make_shared<ShortFileCall<T>>(loop, name_call(action, traits_.url, key),
                                                 deadline, std::move(work), std::move(done));
  call->start(*pool_, std::move(problem));
  return call;
}

OperationHandle FileStore::head(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                HeadCompletion done) {
  auto problem = file_key_problem(key);
  return start_short<std::optional<ObjectInfo>>(
      loop, "HEAD", key.text, deadline, std::move(problem), std::move(done),
      [tree = tree_, key](const CallName& name, const auto&) {
        return tree->stat_object(name, key);
      });
}

OperationHandle FileStore::list(EventLoop& loop, ListRequest request, ListCompletion done) {
  auto problem = list_problem(request);
  const TimePoint deadline = request.deadline;
  const std::string prefix = request.prefix;
  return start_short<ListPage>(
      loop, "LIST", prefix, deadline, std::move(problem), std::move(done),
      [tree = tree_, request = std::move(request)](const CallName& name, const auto& should_stop) {
        return tree->list(name, request, should_stop);
      });
}

OperationHandle FileStore::remove(EventLoop& loop, ObjectKey key, TimePoint deadline,
                                  RemoveCompletion done) {
  auto problem = file_key_problem(key);
  return start_short<void>(
      loop, "DELETE", key.text, deadline, std::move(problem), std::move(done),
      [tree = tree_, key](const CallName& name, const auto&) { return tree->remove(name, key); });
}

OperationHandle FileStore::remove_many(EventLoop& loop, std::vector<ObjectKey> keys,
                                       TimePoint deadline, RemoveManyCompletion done) {
  auto problem = remove_many_problem(keys);
  return start_short<std::vector<RemoveFailure>>(
      loop, "DELETE", {}, deadline, std::move(problem), std::move(done),
      [tree = tree_, url = traits_.url, keys = std::move(keys)](
          const CallName&, const auto& should_stop) -> Result<std::vector<RemoveFailure>> {
        std::vector<RemoveFailure> failures;
        for (const ObjectKey& key : keys) {
          if (should_stop()) break;
          // A key that this store cannot hold is not there, so it counts as deleted.
          if (file_key_problem(key)) continue;
          auto removed = tree->remove(name_call("DELETE", url, key.text), key);
          if (!removed) failures.push_back({.key = key, .error = std::move(removed.error())});
        }
        return failures;
      });
}

}  // namespace objectcache::store
