// Parts of a vector are summed up by views in threads.
#include <algorithm>
#include <cassert>
#include <numeric>
#include <ranges>
#include <thread>
#include <vector>
int main() {
  std::vector<int> v(24);
  std::iota(v.begin(), v.end(), 1);
  std::vector<long> sums(3);
  {
    std::vector<std::jthread> ts;
    for (int t = 0; t < 3; t++)
      ts.emplace_back([&, t] {
        auto part = v | std::views::drop(8 * t) | std::views::take(8) |
                    std::views::filter([](int n) { return n % 2 == 0; }) |
                    std::views::transform([](int n) { return (long)n * n; });
        long s = 0;
        for (long n : part) s += n;
        sums[t] = s;
      });
  }
  assert(std::accumulate(sums.begin(), sums.end(), 0L) == 2600);
}
