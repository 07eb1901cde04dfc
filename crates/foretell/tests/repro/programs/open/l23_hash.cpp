// TRUTH bug hash of shared string
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
std::mutex m; std::string s = "aaa";
int main() { size_t h0 = std::hash<std::string>()(s); std::thread a([] { { std::lock_guard l(m); s[1] = 'b'; } std::lock_guard l(m); s[1] = 'a'; }), b([h0] { std::lock_guard l(m); assert(std::hash<std::string>()(s) == h0); }); a.join(); b.join(); }
