#include <cassert>
#include <mutex>
#include <thread>
#include <vector>
std::mutex m; int n;
int main() { std::vector<std::thread> t; for (int i = 0; i < 64; i++) t.emplace_back([] { std::lock_guard g(m); n++; }); for (auto &x : t) x.join(); assert(n == 64); }
