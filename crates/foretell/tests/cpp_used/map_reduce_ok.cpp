// Futures of a small map-reduce.
#include <cassert>
#include <future>
#include <map>
#include <sstream>
#include <string>
#include <vector>
static std::map<std::string, int> count(const std::string &text) {
  std::map<std::string, int> words;
  std::size_t at = 0;
  while (at < text.size()) {
    auto end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    words[text.substr(at, end - at)]++;
    at = end + 1;
  }
  return words;
}
int main() {
  std::vector<std::string> texts{"a b a", "b c"};
  std::vector<std::future<std::map<std::string, int>>> parts;
  for (auto &t : texts) parts.push_back(std::async(std::launch::async, count, std::cref(t)));
  std::map<std::string, int> all;
  for (auto &p : parts) for (auto &[w, n] : p.get()) all[w] += n;
  assert(all["a"] == 2 && all["b"] == 2 && all["c"] == 1);
}
