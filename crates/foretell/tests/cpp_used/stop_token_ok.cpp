#include <cassert>
#include <stop_token>
#include <thread>
int main() {
  std::stop_source s; std::stop_source s2 = s; std::stop_token t = s.get_token();
  assert(t.stop_possible() && !t.stop_requested() && s == s2 && t == s2.get_token());
  int n = 0; std::stop_callback c1(t, [&] { n += 1; });
  { std::stop_callback c2(t, [&] { n += 10; }); }
  assert(s.request_stop() && !s2.request_stop() && n == 1 && t.stop_requested());
  std::stop_callback c3(t, [&] { n += 100; }); assert(n == 101);
  std::stop_token none; assert(!none.stop_possible() && !none.stop_requested()); std::stop_callback c4(none, [&] { n = 0; });
  std::stop_source ns(std::nostopstate); assert(!ns.stop_possible() && !ns.request_stop());
  std::stop_token late; { std::stop_source gone; late = gone.get_token(); } assert(!late.stop_possible());
  std::jthread j([](std::stop_token st) { while (!st.stop_requested()) std::this_thread::yield(); });
}
