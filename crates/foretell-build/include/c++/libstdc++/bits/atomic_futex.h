// The state of futures, see foretell_waiting.h. It has the size of libstdc++'s own.
#include <bits/c++config.h>
#if _GLIBCXX_RELEASE != 12 || !defined _GLIBCXX_HAS_GTHREADS
#include_next <bits/atomic_futex.h>
#elif !defined _GLIBCXX_ATOMIC_FUTEX_H
#define _GLIBCXX_ATOMIC_FUTEX_H 1

#include <atomic>
#include "../../foretell_waiting.h"
#include <bits/chrono.h>

namespace std _GLIBCXX_VISIBILITY(default) {

template <unsigned WaiterBit = 0x80000000> class __atomic_futex_unsigned {
  atomic<unsigned> data;

public:
  explicit __atomic_futex_unsigned(unsigned value) : data(value) {}

  unsigned _M_load(memory_order order) { return data.load(order) & ~WaiterBit; }

  unsigned _M_load_when_not_equal(unsigned value, memory_order order) {
    unsigned seen = value;
    __foretell::wait(&data, [&] { return (seen = _M_load(order)) != value; });
    return seen;
  }

  void _M_load_when_equal(unsigned value, memory_order order) {
    __foretell::wait(&data, [&] { return _M_load(order) == value; });
  }

  template <typename Count, typename Period>
  bool _M_load_when_equal_for(unsigned value, memory_order order, const chrono::duration<Count, Period> &time) {
    using namespace chrono;
    auto end = duration_cast<nanoseconds>(steady_clock::now().time_since_epoch() + time).count();
    timespec until = {static_cast<time_t>(end / 1000000000), static_cast<long>(end % 1000000000)};
    return __foretell::wait(&data, [&] { return _M_load(order) == value; }, &until);
  }

  template <typename Clock, typename Duration>
  bool _M_load_when_equal_until(unsigned value, memory_order order,
                                const chrono::time_point<Clock, Duration> &until) {
    return _M_load_when_equal_for(value, order, until - Clock::now());
  }

  void _M_store_notify_all(unsigned value, memory_order order) {
    data.store(value, order);
    __foretell::wake(&data, true);
  }
};

} // namespace std

#endif
