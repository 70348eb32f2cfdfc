#pragma once

// Boost.Asio as this room uses it. Included by sources of src/http only: no header that others see
// names Boost. Its non-template code is compiled once, in asio_impl.cc.
#define BOOST_ASIO_SEPARATE_COMPILATION
#define BOOST_ASIO_NO_DEPRECATED
#define BOOST_ASIO_DISABLE_BOOST_COROUTINE
#define BOOST_ASIO_NO_TS_EXECUTORS

#include <boost/asio/io_context.hpp>

#include "http/reactor.h"

namespace objectcache::http {

/// Lets the sources of this room reach the reactor's Asio context.
struct ReactorAccess {
  static boost::asio::io_context& context(Reactor& reactor);
};

}  // namespace objectcache::http
