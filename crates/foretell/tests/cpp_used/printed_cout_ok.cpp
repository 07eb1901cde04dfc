#include <cassert>
#include <iostream>
#include <mutex>
#include <thread>
static std::mutex m; static int n, jobs;
static void work() {
  int mine; { std::lock_guard g(m); mine = ++jobs; }
  std::cout << "job " << mine << std::endl;
  { std::lock_guard g(m); n++; }
}
int main() { std::thread a(work), b(work); a.join(); b.join(); assert(n == 2); }
