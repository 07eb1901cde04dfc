#include <cassert>
#include <iostream>
#include <mutex>
#include <thread>
static std::mutex m; static int n, jobs;
static int get() { std::lock_guard g(m); return n; }
static void set(int v) { std::lock_guard g(m); n = v; }
static void work() {
  int mine; { std::lock_guard g(m); mine = ++jobs; }
  std::cout << "job " << mine << std::endl;
  set(get() + 1);
}
int main() { std::thread a(work), b(work); a.join(); b.join(); assert(n == 2); }
