// Functions of libc++ that its headers call and only its shared library has: threads, locks, conditions, futures, the
// counters of shared pointers, and strings. What they do would not be seen. `foretell c++ -stdlib=libc++` compiles these in
// their place into each program. What they do is what the standard says; the classes are those of the headers.
#include <__config>

#if defined _LIBCPP_VERSION && __cplusplus >= 201103L && _LIBCPP_HAS_THREADS
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <errno.h>
#include <pthread.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "foretell_waiting.h"

_LIBCPP_BEGIN_NAMESPACE_STD

namespace {

void check(int error, const char *what) {
  if (error) std::__throw_system_error(error, what);
}

} // namespace

// Mutexes.

void mutex::lock() { check(pthread_mutex_lock(&__m_), "mutex lock failed"); }

bool mutex::try_lock() noexcept { return pthread_mutex_trylock(&__m_) == 0; }

void mutex::unlock() noexcept { pthread_mutex_unlock(&__m_); }

#if !_LIBCPP_HAS_TRIVIAL_MUTEX_DESTRUCTION
mutex::~mutex() noexcept { pthread_mutex_destroy(&__m_); }
#endif

recursive_mutex::recursive_mutex() {
  pthread_mutexattr_t recursive;
  check(pthread_mutexattr_init(&recursive), "recursive_mutex constructor failed");
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  int error = pthread_mutex_init(&__m_, &recursive);
  pthread_mutexattr_destroy(&recursive);
  check(error, "recursive_mutex constructor failed");
}

recursive_mutex::~recursive_mutex() { pthread_mutex_destroy(&__m_); }

void recursive_mutex::lock() { check(pthread_mutex_lock(&__m_), "recursive_mutex lock failed"); }

bool recursive_mutex::try_lock() noexcept { return pthread_mutex_trylock(&__m_) == 0; }

void recursive_mutex::unlock() noexcept { pthread_mutex_unlock(&__m_); }

timed_mutex::timed_mutex() : __locked_(false) {}

timed_mutex::~timed_mutex() { lock_guard<mutex> inner(__m_); }

void timed_mutex::lock() {
  unique_lock<mutex> inner(__m_);
  while (__locked_) __cv_.wait(inner);
  __locked_ = true;
}

bool timed_mutex::try_lock() noexcept {
  lock_guard<mutex> inner(__m_);
  if (__locked_) return false;
  return __locked_ = true;
}

void timed_mutex::unlock() noexcept {
  lock_guard<mutex> inner(__m_);
  __locked_ = false;
  __cv_.notify_one();
}

recursive_timed_mutex::recursive_timed_mutex() : __count_(0), __id_{} {}

recursive_timed_mutex::~recursive_timed_mutex() { lock_guard<mutex> inner(__m_); }

void recursive_timed_mutex::lock() {
  __thread_id me = this_thread::get_id();
  unique_lock<mutex> inner(__m_);
  if (me == __id_) {
    if (__count_ == size_t(-1)) check(EAGAIN, "recursive_timed_mutex lock limit reached");
    ++__count_;
    return;
  }
  while (__count_ != 0) __cv_.wait(inner);
  __count_ = 1;
  __id_ = me;
}

bool recursive_timed_mutex::try_lock() noexcept {
  __thread_id me = this_thread::get_id();
  lock_guard<mutex> inner(__m_);
  if (__count_ != 0 && (me != __id_ || __count_ == size_t(-1))) return false;
  ++__count_;
  __id_ = me;
  return true;
}

void recursive_timed_mutex::unlock() noexcept {
  lock_guard<mutex> inner(__m_);
  if (--__count_ != 0) return;
  __id_ = __thread_id();
  __cv_.notify_one();
}

#if _LIBCPP_STD_VER >= 14
// Who wants to write enters first, and then waits until the readers have left.

__shared_mutex_base::__shared_mutex_base() : __state_(0) {}

void __shared_mutex_base::lock() {
  unique_lock<mutex> inner(__mut_);
  while (__state_ & __write_entered_) __gate1_.wait(inner);
  __state_ |= __write_entered_;
  while (__state_ & __n_readers_) __gate2_.wait(inner);
}

bool __shared_mutex_base::try_lock() {
  lock_guard<mutex> inner(__mut_);
  if (__state_ != 0) return false;
  __state_ = __write_entered_;
  return true;
}

void __shared_mutex_base::unlock() {
  lock_guard<mutex> inner(__mut_);
  __state_ = 0;
  __gate1_.notify_all();
}

void __shared_mutex_base::lock_shared() {
  unique_lock<mutex> inner(__mut_);
  while ((__state_ & __write_entered_) || (__state_ & __n_readers_) == __n_readers_) __gate1_.wait(inner);
  ++__state_;
}

bool __shared_mutex_base::try_lock_shared() {
  lock_guard<mutex> inner(__mut_);
  if ((__state_ & __write_entered_) || (__state_ & __n_readers_) == __n_readers_) return false;
  ++__state_;
  return true;
}

void __shared_mutex_base::unlock_shared() {
  lock_guard<mutex> inner(__mut_);
  unsigned readers = (__state_-- & __n_readers_) - 1;
  if (__state_ & __write_entered_) {
    if (readers == 0) __gate2_.notify_one();
  } else if (readers == __n_readers_ - 1) {
    __gate1_.notify_one();
  }
}

shared_timed_mutex::shared_timed_mutex() : __base_() {}
void shared_timed_mutex::lock() { __base_.lock(); }
bool shared_timed_mutex::try_lock() { return __base_.try_lock(); }
void shared_timed_mutex::unlock() { __base_.unlock(); }
void shared_timed_mutex::lock_shared() { __base_.lock_shared(); }
bool shared_timed_mutex::try_lock_shared() { return __base_.try_lock_shared(); }
void shared_timed_mutex::unlock_shared() { __base_.unlock_shared(); }
#endif

// Once: of those that find the flag unset one runs the function, and the others wait for it. If it throws, it was nobody.

void __call_once(volatile once_flag::_State_type &flag, void *argument, void (*function)(void *)) {
  using State = once_flag::_State_type;
  for (;;) {
    State found = once_flag::_Unset;
    if (__atomic_compare_exchange_n(&flag, &found, State(once_flag::_Pending), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      break;
    if (found == once_flag::_Complete) return;
    __foretell::wait(&flag, [&flag] { return __atomic_load_n(&flag, __ATOMIC_ACQUIRE) != once_flag::_Pending; });
  }
  struct Settled {
    volatile State &flag;
    State state;
    ~Settled() {
      __atomic_store_n(&flag, state, __ATOMIC_RELEASE);
      __foretell::wake(&flag, true);
    }
  } settled = {flag, State(once_flag::_Unset)};
  function(argument);
  settled.state = once_flag::_Complete;
}

// Conditions.

#if !_LIBCPP_HAS_TRIVIAL_CONDVAR_DESTRUCTION
condition_variable::~condition_variable() { pthread_cond_destroy(&__cv_); }
#endif

void condition_variable::notify_one() noexcept { pthread_cond_signal(&__cv_); }

void condition_variable::notify_all() noexcept { pthread_cond_broadcast(&__cv_); }

void condition_variable::wait(unique_lock<mutex> &lock) noexcept {
  if (!lock.owns_lock()) check(EPERM, "condition_variable::wait: mutex not locked");
  check(pthread_cond_wait(&__cv_, lock.mutex()->native_handle()), "condition_variable wait failed");
}

void condition_variable::__do_timed_wait(
    unique_lock<mutex> &lock, chrono::time_point<chrono::system_clock, chrono::nanoseconds> until) noexcept {
  if (!lock.owns_lock()) check(EPERM, "condition_variable::timed wait: mutex not locked");
  auto end = until.time_since_epoch().count();
  timespec time = {static_cast<time_t>(end / 1000000000), static_cast<long>(end % 1000000000)};
  int error = pthread_cond_timedwait(&__cv_, lock.mutex()->native_handle(), &time);
  if (error != ETIMEDOUT) check(error, "condition_variable timed_wait failed");
}

// Threads.

thread::~thread() {
  if (joinable()) terminate();
}

void thread::join() {
  int error = joinable() ? pthread_join(__t_, nullptr) : EINVAL;
  check(error, "thread::join failed");
  __t_ = _LIBCPP_NULL_THREAD;
}

void thread::detach() {
  int error = joinable() ? pthread_detach(__t_) : EINVAL;
  check(error, "thread::detach failed");
  __t_ = _LIBCPP_NULL_THREAD;
}

unsigned thread::hardware_concurrency() noexcept { return get_nprocs(); }

namespace this_thread {

void sleep_for(const chrono::nanoseconds &time) {
  if (time <= chrono::nanoseconds::zero()) return;
  auto count = time.count();
  timespec left = {static_cast<time_t>(count / 1000000000), static_cast<long>(count % 1000000000)};
  while (nanosleep(&left, &left) == -1 && errno == EINTR) {
  }
}

} // namespace this_thread

// What a thread does last.
class _LIBCPP_HIDDEN __thread_struct_imp {
public:
  vector<pair<condition_variable *, mutex *>> notified;
  vector<__assoc_sub_state *> ready;
};

__thread_struct::__thread_struct() : __p_(nullptr) {}

__thread_struct::~__thread_struct() {
  if (!__p_) return;
  for (auto &one : __p_->notified) {
    one.second->unlock();
    one.first->notify_all();
  }
  for (__assoc_sub_state *state : __p_->ready) {
    state->__make_ready();
    state->__release_shared();
  }
  delete __p_;
}

void __thread_struct::notify_all_at_thread_exit(condition_variable *condition, mutex *locked) {
  if (!__p_) __p_ = new __thread_struct_imp;
  __p_->notified.emplace_back(condition, locked);
}

void __thread_struct::__make_ready_at_thread_exit(__assoc_sub_state *state) {
  if (!__p_) __p_ = new __thread_struct_imp;
  __p_->ready.push_back(state);
  state->__add_shared();
}

__thread_specific_ptr<__thread_struct> &__thread_local_data() {
  static __thread_specific_ptr<__thread_struct> data;
  return data;
}

void notify_all_at_thread_exit(condition_variable &condition, unique_lock<mutex> lock) {
  __thread_local_data()->notify_all_at_thread_exit(&condition, lock.release());
}

// Counters of shared pointers: one less than there are owners.

__shared_count::~__shared_count() {}

__shared_weak_count::~__shared_weak_count() {}

void __shared_weak_count::__release_weak() noexcept {
  // Whoever sees that nobody else has it need not count.
  if (__atomic_load_n(&__shared_weak_owners_, __ATOMIC_ACQUIRE) == 0 ||
      std::__libcpp_atomic_refcount_decrement(__shared_weak_owners_) == -1)
    __on_zero_shared_weak();
}

__shared_weak_count *__shared_weak_count::lock() noexcept {
  long owners = __atomic_load_n(&__shared_owners_, __ATOMIC_SEQ_CST);
  while (owners != -1) {
    if (__atomic_compare_exchange_n(&__shared_owners_, &owners, owners + 1, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return this;
  }
  return nullptr;
}

const void *__shared_weak_count::__get_deleter(const type_info &) const noexcept { return nullptr; }

// Futures.

void __assoc_sub_state::__on_zero_shared() noexcept { delete this; }

void __assoc_sub_state::set_value() {
  lock_guard<mutex> inner(__mut_);
  if (__has_value()) std::__throw_future_error(future_errc::promise_already_satisfied);
  __state_ |= __constructed | ready;
  __cv_.notify_all();
}

void __assoc_sub_state::set_value_at_thread_exit() {
  lock_guard<mutex> inner(__mut_);
  if (__has_value()) std::__throw_future_error(future_errc::promise_already_satisfied);
  __state_ |= __constructed;
  __thread_local_data()->__make_ready_at_thread_exit(this);
}

void __assoc_sub_state::set_exception(exception_ptr thrown) {
  lock_guard<mutex> inner(__mut_);
  if (__has_value()) std::__throw_future_error(future_errc::promise_already_satisfied);
  __exception_ = thrown;
  __state_ |= ready;
  __cv_.notify_all();
}

void __assoc_sub_state::set_exception_at_thread_exit(exception_ptr thrown) {
  lock_guard<mutex> inner(__mut_);
  if (__has_value()) std::__throw_future_error(future_errc::promise_already_satisfied);
  __exception_ = thrown;
  __thread_local_data()->__make_ready_at_thread_exit(this);
}

void __assoc_sub_state::__make_ready() {
  lock_guard<mutex> inner(__mut_);
  __state_ |= ready;
  __cv_.notify_all();
}

void __assoc_sub_state::copy() {
  unique_lock<mutex> inner(__mut_);
  __sub_wait(inner);
  if (__exception_ != nullptr) std::rethrow_exception(__exception_);
}

void __assoc_sub_state::wait() {
  unique_lock<mutex> inner(__mut_);
  __sub_wait(inner);
}

void __assoc_sub_state::__sub_wait(unique_lock<mutex> &inner) {
  if (__is_ready()) return;
  if (__state_ & static_cast<unsigned>(deferred)) {
    __state_ &= ~static_cast<unsigned>(deferred);
    inner.unlock();
    __execute();
    return;
  }
  while (!__is_ready()) __cv_.wait(inner);
}

void __assoc_sub_state::__execute() { std::__throw_future_error(future_errc::no_state); }

namespace {

// A future without a result of its own gives its share of the state up when it is done.
struct Share {
  __assoc_sub_state *state;
  ~Share() { state->__release_shared(); }
};

} // namespace

future<void>::future(__assoc_sub_state *state) : __state_(state) { state->__attach_future(); }

future<void>::~future() {
  if (__state_) __state_->__release_shared();
}

void future<void>::get() {
  Share share = {__state_};
  __state_ = nullptr;
  share.state->copy();
}

promise<void>::promise() : __state_(new __assoc_sub_state) {}

promise<void>::~promise() {
  if (!__state_) return;
  // The state's own share is one, and each other means that somebody waits.
  if (!__state_->__has_value() && __state_->use_count() > 1)
    __state_->set_exception(std::make_exception_ptr(future_error(future_errc::broken_promise)));
  __state_->__release_shared();
}

future<void> promise<void>::get_future() {
  if (!__state_) std::__throw_future_error(future_errc::no_state);
  return future<void>(__state_);
}

void promise<void>::set_value() {
  if (!__state_) std::__throw_future_error(future_errc::no_state);
  __state_->set_value();
}

void promise<void>::set_exception(exception_ptr thrown) {
  if (!__state_) std::__throw_future_error(future_errc::no_state);
  __state_->set_exception(thrown);
}

void promise<void>::set_value_at_thread_exit() {
  if (!__state_) std::__throw_future_error(future_errc::no_state);
  __state_->set_value_at_thread_exit();
}

void promise<void>::set_exception_at_thread_exit(exception_ptr thrown) {
  if (!__state_) std::__throw_future_error(future_errc::no_state);
  __state_->set_exception_at_thread_exit(thrown);
}

shared_future<void>::~shared_future() {
  if (__state_) __state_->__release_shared();
}

shared_future<void> &shared_future<void>::operator=(const shared_future &other) {
  if (other.__state_) other.__state_->__add_shared();
  if (__state_) __state_->__release_shared();
  __state_ = other.__state_;
  return *this;
}

// Barriers: the last of those that a phase expects ends it. The header keeps the expected number up to date between two
// phases, and only who ended one does so.

class __barrier_algorithm_base {
public:
  explicit __barrier_algorithm_base(ptrdiff_t &expected) : expected(expected), arrived(0) {}
  ptrdiff_t &expected;
  ptrdiff_t arrived;
};

_LIBCPP_EXPORTED_FROM_ABI __barrier_algorithm_base *__construct_barrier_algorithm_base(ptrdiff_t &expected) {
  return new __barrier_algorithm_base(expected);
}

_LIBCPP_EXPORTED_FROM_ABI bool __arrive_barrier_algorithm_base(__barrier_algorithm_base *barrier, uint8_t) noexcept {
  // As soon as all have arrived, the number may change.
  ptrdiff_t expected = barrier->expected;
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) != expected) return false;
  __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
  return true;
}

_LIBCPP_EXPORTED_FROM_ABI void __destroy_barrier_algorithm_base(__barrier_algorithm_base *barrier) noexcept {
  delete barrier;
}

#if _LIBCPP_AVAILABILITY_HAS_HASH_MEMORY
size_t __hash_memory(_LIBCPP_NOESCAPE const void *first, size_t size) noexcept {
  return __murmur2_or_cityhash<size_t>()(first, size);
}
#endif

#define FORETELL_DEFINE(...) template __VA_ARGS__;
_LIBCPP_STRING_V1_EXTERN_TEMPLATE_LIST(FORETELL_DEFINE, char)
// Streams of strings. Numbers are put into them by functions that stay in the library, as `std::cout` does.
template class basic_streambuf<char>;
template class basic_stringbuf<char>;

_LIBCPP_END_NAMESPACE_STD
#endif
