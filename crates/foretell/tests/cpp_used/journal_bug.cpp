// A log that is read back line by line; the counter of lines is not protected.
#include <cassert>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
struct Journal {
  std::mutex m;
  std::ostringstream text;
  int lines = 0;
  void add(const std::string &s) { { std::lock_guard l(m); text << s << '\n'; } lines++; }
};
int main() {
  Journal j;
  std::thread a([&] { j.add("alpha"); }), b([&] { j.add("beta"); });
  a.join(); b.join();
  std::istringstream in(j.text.str());
  int seen = 0;
  for (std::string line; std::getline(in, line);) seen++;
  assert(seen == j.lines);
}
