// The one place that compiles Boost.Asio's own code.
#include "http/asio.h"

#include <boost/asio/impl/src.hpp>
