// Trees and lists against vectors, in many random orders; after each step the tree is balanced.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <set>
#include <vector>

using Node = std::_Rb_tree_node_base;
using Numbers = std::vector<int>;

static void must(bool holds, const char *what) {
  if (holds) return;
  std::printf("%s\n", what);
  std::exit(1);
}

// Black nodes on every way down.
static int height(const Node *node, const Node *parent) {
  if (!node) return 1;
  must(node->_M_parent == parent, "parent");
  bool red = node->_M_color == std::_S_red;
  for (const Node *child : {node->_M_left, node->_M_right})
    must(!red || !child || child->_M_color == std::_S_black, "a red child of a red node");
  int left = height(node->_M_left, node);
  must(left == height(node->_M_right, node), "height");
  return left + !red;
}

static void compare(const std::set<int> &tree, Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  must(Numbers(tree.begin(), tree.end()) == numbers, "forwards");
  std::reverse(numbers.begin(), numbers.end());
  must(Numbers(tree.rbegin(), tree.rend()) == numbers, "backwards");
  const Node *header = tree.end()._M_node;
  if (header->_M_parent) {
    must(header->_M_parent->_M_color == std::_S_black, "a red root");
    height(header->_M_parent, header);
  }
}

static void trees(int seed) {
  std::srand(seed);
  std::set<int> tree;
  Numbers numbers;
  for (int step = 0; step < 60; step++) {
    int number = std::rand() % 40;
    auto at = std::find(numbers.begin(), numbers.end(), number);
    if (std::rand() % 5 < 3) {
      must(tree.insert(number).second == (at == numbers.end()), "insert");
      if (at == numbers.end()) numbers.push_back(number);
    } else {
      must(tree.erase(number) == (at != numbers.end()), "erase");
      if (at != numbers.end()) numbers.erase(at);
    }
    compare(tree, numbers);
  }
}

static void lists(int seed) {
  std::list<int> one, other;
  Numbers numbers;
  for (int number = 0; number < 20; number++) {
    one.push_back(number);
    numbers.push_back(number);
  }
  one.reverse();
  std::reverse(numbers.begin(), numbers.end());
  must(Numbers(one.begin(), one.end()) == numbers, "reverse");
  auto at = one.begin();
  std::advance(at, seed % 20);
  other.splice(other.end(), one, at, one.end());
  Numbers joined(one.begin(), one.end());
  joined.insert(joined.end(), other.begin(), other.end());
  must(joined == numbers, "splice");
  other.sort();
  must(std::is_sorted(other.begin(), other.end()), "sort");
  other.remove_if([](int number) { return number % 2 == 1; });
  must(std::count_if(other.begin(), other.end(), [](int n) { return n % 2 == 1; }) == 0, "remove");
}

int main() {
  for (int seed = 0; seed < 200; seed++) {
    trees(seed);
    lists(seed);
  }
  std::puts("as the library does");
}
