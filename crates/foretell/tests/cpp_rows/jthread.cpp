#include <thread>
#include <stop_token>
#include <cassert>
#include <mutex>
std::mutex m; int v;
int main() { { std::jthread t([](std::stop_token) { std::lock_guard g(m); v++; }); std::lock_guard g(m); v++; } assert(v == 2); }
