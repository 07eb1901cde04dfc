// C++ whose functions have unusual control flow or unusual results.
#include <any>
#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <typeinfo>
#include <variant>
#include <vector>

int shared[8];

struct Guard { ~Guard() { shared[0]++; } };
struct Thrower { int n; explicit Thrower(int n) : n(n) { if (shared[1]) throw n; } ~Thrower() noexcept(false) { if (shared[2]) throw 2L; } };

int exceptions(int n) {
  Guard guard;
  try {
    Thrower one(n), two(n + 1);
    try { if (shared[3]) throw std::runtime_error("a"); }
    catch (const std::logic_error &) { return 1; }
    return one.n + two.n;
  } catch (int i) { Guard inner; return i; }
  catch (const std::exception &e) { shared[4]++; throw; }
  catch (...) { return shared[5]; }
}
int function_try(int n) try { Thrower t(n); return t.n; } catch (int) { return -1; }
void never_throws() noexcept { Thrower t(shared[0]); }
struct Base { virtual ~Base() = default; virtual int go(int n) { return n + shared[0]; } };
struct Side { virtual int side() { return shared[1]; } int s = 3; };
struct Derived : Base, virtual Side { int go(int n) override { return Base::go(n) + side(); } std::string name; };
int dynamic(Base *b) { auto *d = dynamic_cast<Derived *>(b); return d ? d->go(1) : (int)typeid(*b).hash_code(); }
int member(int (Base::*method)(int), Base *b) { return (b->*method)(shared[0]); }
int field(int Side::*f, Derived *d) { return d->*f += shared[1]; }

struct Task {
  struct promise_type {
    int value = 0;
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int v) { value = v; return {}; }
    void return_value(int v) { value = v; }
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};
Task counted(int n) {
  Guard guard;
  int local[4] = {shared[0], n};
  for (int i = 0; i < n; i++) {
    local[i & 3] += shared[i & 7];
    co_yield local[i & 3];
    if (shared[7]) throw 1;
  }
  co_return local[0];
}
struct Transfer { bool await_ready() { return shared[0]; } std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) { return h; } int await_resume() { return shared[1]; } };
Task transferring() { int a = co_await Transfer{}; int b = co_await Transfer{}; co_return a + b; }
int drive() { Task t = counted(3); int sum = 0; while (!t.handle.done()) { t.handle.resume(); sum += t.handle.promise().value; } t.handle.destroy(); return sum; }

std::atomic<int> plain;
struct Twelve { int a, b, c; };
std::atomic<Twelve> twelve;
std::atomic<std::shared_ptr<int>> pointer;
int atomics() {
  Twelve t = twelve.load();
  t.b += plain.fetch_add(2, std::memory_order_relaxed);
  while (!twelve.compare_exchange_weak(t, {1, 2, 3})) {}
  pointer.store(std::make_shared<int>(shared[0]));
  plain.wait(3); plain.notify_all();
  return *pointer.load() + t.a;
}
static thread_local std::string own = std::to_string(shared[0]);
const std::string &own_string() { own += 'x'; return own; }
int &local_static() { static int once = shared[0] + 1; static Derived big; return ++once; }
template <class... T> auto fold(T... t) { return (t + ... + shared[0]); }
std::tuple<int, double, std::string> tuples(int n) { auto [a, b] = std::pair{shared[n & 7], 2.0}; return {a, b, std::string(n, 'a')}; }
int lambdas(int n) { int v[n + 1]; v[0] = shared[0]; auto f = [&](auto x) { return x + shared[1] + v[0]; }; std::function<int(int)> g = f; return g(n) + f(2); }
int variants(std::variant<int, std::string, double> v) { return std::visit([](auto &&x) { if constexpr (std::is_arithmetic_v<std::decay_t<decltype(x)>>) return (int)x + shared[0]; else return (int)x.size(); }, v); }
std::optional<int> optionals(bool b) { if (b) return shared[0]; return std::nullopt; }
void *operator new[](std::size_t n, int hint) { return ::operator new(n + hint + shared[0]); }
int *placed() { return new (shared[0]) int[3]{1, 2, shared[1]}; }
int initial(std::initializer_list<int> l) { int s = 0; for (int i : l) s += i; return s; }
int call_initial() { return initial({shared[0], 1, shared[1]}); }
consteval int at_compile_time(int n) { return n * 2; }
constexpr int both(int n) { return n + at_compile_time(2); }
int checked(int n) { assert(shared[0] < n); return both(shared[1]); }
struct NonTrivial { NonTrivial(const NonTrivial &o) : v(o.v + shared[0]) {} NonTrivial(int n) : v(n) {} ~NonTrivial() {} int v; };
NonTrivial by_value(NonTrivial a, NonTrivial b) { a.v += b.v; return a; }
int call_by_value() { return by_value(NonTrivial(shared[0]), 2).v; }
struct alignas(64) Aligned { int v[16]; };
Aligned aligned(Aligned a) { a.v[shared[0] & 15] = 1; return a; }
void threads() { std::mutex m; std::vector<std::jthread> all; for (int i = 0; i < 2; i++) all.emplace_back([&m, i] { std::scoped_lock l(m); shared[i]++; }); }
long long sum_of(const std::vector<bool> &v) { long long n = 0; for (bool b : v) n += b ? shared[0] : 1; return n; }
extern "C" int with_c_linkage(int n) { return shared[n & 7]; }
int (&array_reference())[8] { return shared; }
decltype(auto) forwarded(auto &&f) { return std::forward<decltype(f)>(f)(shared[0]); }
int forward_all() { return forwarded([](int n) { return n + 1; }); }
