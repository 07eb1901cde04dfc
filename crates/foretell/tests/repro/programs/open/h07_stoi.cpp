// TRUTH bug string conversion
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
#include <algorithm>
#include <stdexcept>
std::mutex m; std::string s = "0";
int get() { std::lock_guard l(m); return std::stoi(s); }
void put(int v) { std::lock_guard l(m); s = std::to_string(v); }
void f() { int v = get(); put(v + 1); }
int main() { std::thread a(f), b(f); a.join(); b.join(); assert(get() == 2); }
