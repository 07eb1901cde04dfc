#include <atomic>
#include <cassert>
#include <thread>
#include <vector>
std::atomic<int> n;
int main() { std::vector<std::thread> t; for (int i = 0; i < 256; i++) t.emplace_back([] { int v = n; n = v + 1; }); for (auto &x : t) x.join(); assert(n == 256); }
