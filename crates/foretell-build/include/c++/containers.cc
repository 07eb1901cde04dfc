// Functions of libstdc++ that its headers call and only its shared library has: what they do to the nodes of
// trees and lists, to hash tables and to strings would not be seen. `foretell c++` compiles these in their place into each program.
//
// A tree's header has the root as parent, the first node as left and the last one as right. Balance is kept by
// colours: no red node has a red child, and all ways from a node down have the same number of black nodes.
#include <algorithm>
#include <list>
#include <map>
#include <string>
#include <unordered_map>

namespace {

using Node = std::_Rb_tree_node_base;

bool is_red(const Node *node) { return node && node->_M_color == std::_S_red; }

// The link that leads to the node.
Node *&link_to(Node *node, Node *&root) {
  if (node == root) return root;
  Node *parent = node->_M_parent;
  return parent->_M_left == node ? parent->_M_left : parent->_M_right;
}

// One child takes the node's place, and the node becomes the other child of that one.
void lift(Node *node, bool right_child, Node *&root) {
  Node *child = right_child ? node->_M_right : node->_M_left;
  Node *&inner = right_child ? child->_M_left : child->_M_right;
  (right_child ? node->_M_right : node->_M_left) = inner;
  if (inner) inner->_M_parent = node;
  Node *&link = link_to(node, root);
  child->_M_parent = node->_M_parent;
  link = child;
  inner = node;
  node->_M_parent = child;
}

Node *node_after(Node *node) {
  if (Node *below = node->_M_right) {
    while (below->_M_left) below = below->_M_left;
    return below;
  }
  Node *above = node->_M_parent;
  while (node == above->_M_right) {
    node = above;
    above = above->_M_parent;
  }
  // From a root without a right child the walk has gone round the header.
  return node->_M_right == above ? node : above;
}

Node *node_before(Node *node) {
  bool is_header = node->_M_color == std::_S_red && node->_M_parent->_M_parent == node;
  if (is_header) return node->_M_right;
  if (Node *below = node->_M_left) {
    while (below->_M_right) below = below->_M_right;
    return below;
  }
  Node *above = node->_M_parent;
  while (node == above->_M_left) {
    node = above;
    above = above->_M_parent;
  }
  return above;
}

// A way through `node` has one black node too few; `parent` is above it, because it may be null.
void mend(Node *node, Node *parent, Node *&root) {
  while (node != root && !is_red(node)) {
    bool right = node != parent->_M_left;
    Node *sibling = right ? parent->_M_left : parent->_M_right;
    if (is_red(sibling)) {
      sibling->_M_color = std::_S_black;
      parent->_M_color = std::_S_red;
      lift(parent, !right, root);
      sibling = right ? parent->_M_left : parent->_M_right;
    }
    Node *near = right ? sibling->_M_right : sibling->_M_left;
    Node *far = right ? sibling->_M_left : sibling->_M_right;
    if (!is_red(near) && !is_red(far)) {
      sibling->_M_color = std::_S_red;
      node = parent;
      parent = parent->_M_parent;
      continue;
    }
    if (!is_red(far)) {
      near->_M_color = std::_S_black;
      sibling->_M_color = std::_S_red;
      lift(sibling, right, root);
      far = sibling;
      sibling = near;
    }
    sibling->_M_color = parent->_M_color;
    parent->_M_color = std::_S_black;
    far->_M_color = std::_S_black;
    lift(parent, !right, root);
    return;
  }
  if (node) node->_M_color = std::_S_black;
}

}  // namespace

namespace std {

Node *_Rb_tree_increment(Node *node) throw() { return node_after(node); }

const Node *_Rb_tree_increment(const Node *node) throw() { return node_after(const_cast<Node *>(node)); }

Node *_Rb_tree_decrement(Node *node) throw() { return node_before(node); }

const Node *_Rb_tree_decrement(const Node *node) throw() {
  return node_before(const_cast<Node *>(node));
}

void _Rb_tree_insert_and_rebalance(const bool left, Node *node, Node *parent, Node &header) throw() {
  Node *&root = header._M_parent;
  node->_M_parent = parent;
  node->_M_left = nullptr;
  node->_M_right = nullptr;
  node->_M_color = _S_red;
  if (left) {
    parent->_M_left = node;  // of the header, too: then it is the first
    if (parent == &header) {
      header._M_parent = node;
      header._M_right = node;
    } else if (parent == header._M_left) {
      header._M_left = node;
    }
  } else {
    parent->_M_right = node;
    if (parent == header._M_right) header._M_right = node;
  }
  while (node != root && is_red(node->_M_parent)) {
    Node *above = node->_M_parent;
    Node *top = above->_M_parent;
    bool right = above == top->_M_right;
    Node *uncle = right ? top->_M_left : top->_M_right;
    top->_M_color = _S_red;
    if (is_red(uncle)) {
      above->_M_color = _S_black;
      uncle->_M_color = _S_black;
      node = top;
      continue;
    }
    if ((node == above->_M_right) != right) {
      lift(above, !right, root);
      above = node;
    }
    above->_M_color = _S_black;
    lift(top, right, root);
    break;
  }
  root->_M_color = _S_black;
}

Node *_Rb_tree_rebalance_for_erase(Node *const node, Node &header) throw() {
  Node *&root = header._M_parent;
  Node *&first = header._M_left;
  Node *&last = header._M_right;
  if (node->_M_left && node->_M_right) {
    // The next node, which has no left child, takes its place.
    Node *heir = node_after(node);
    Node *child = heir->_M_right;
    Node *parent = heir->_M_parent == node ? heir : heir->_M_parent;
    bool black = heir->_M_color == _S_black;
    if (parent != heir) {
      parent->_M_left = child;
      if (child) child->_M_parent = parent;
      heir->_M_right = node->_M_right;
      heir->_M_right->_M_parent = heir;
    }
    heir->_M_left = node->_M_left;
    heir->_M_left->_M_parent = heir;
    Node *&link = link_to(node, root);
    heir->_M_parent = node->_M_parent;
    link = heir;
    heir->_M_color = node->_M_color;
    if (black) mend(child, parent, root);
    return node;
  }
  Node *child = node->_M_left ? node->_M_left : node->_M_right;
  Node *parent = node->_M_parent;
  if (node == first) first = child && child == node->_M_right ? node_after(node) : parent;
  if (node == last) last = child && child == node->_M_left ? node_before(node) : parent;
  link_to(node, root) = child;
  if (child) child->_M_parent = parent;
  if (node->_M_color == _S_black) mend(child, parent, root);
  return node;
}

namespace __detail {

void _List_node_base::_M_hook(_List_node_base *const before) noexcept {
  _M_next = before;
  _M_prev = before->_M_prev;
  before->_M_prev->_M_next = this;
  before->_M_prev = this;
}

void _List_node_base::_M_unhook() noexcept {
  _M_prev->_M_next = _M_next;
  _M_next->_M_prev = _M_prev;
}

// Moves the nodes from `first` up to `last`, which stays, to before this one.
void _List_node_base::_M_transfer(_List_node_base *const first, _List_node_base *const last) noexcept {
  if (this == last) return;
  _List_node_base *tail = last->_M_prev;
  first->_M_prev->_M_next = last;
  last->_M_prev = first->_M_prev;
  first->_M_prev = _M_prev;
  tail->_M_next = this;
  _M_prev->_M_next = first;
  _M_prev = tail;
}

void _List_node_base::_M_reverse() noexcept {
  _List_node_base *node = this;
  do {
    _List_node_base *after = node->_M_next;
    node->_M_next = node->_M_prev;
    node->_M_prev = after;
    node = after;
  } while (node != this);
}

}  // namespace __detail

}  // namespace std

// How many buckets a hash table has: the numbers are those of the library, because the order of its elements depends
// on them.
namespace std {
namespace __detail {

// In the library: 304 primes and, behind them, the largest again.
extern const unsigned long __prime_list[];

size_t _Prime_rehash_policy::_M_next_bkt(size_t wanted) const {
  static const unsigned char small[] = {2, 2, 2, 3, 5, 5, 7, 7, 11, 11, 11, 11, 13, 13};
  const unsigned long *last = __prime_list + 256 + 48 - 1;
  // Nothing is allocated until there is an element.
  if (wanted == 0) return 1;
  size_t buckets = wanted < sizeof small ? small[wanted] : *std::lower_bound(__prime_list + 6, last, wanted);
  bool is_largest = buckets == *last;
  _M_next_resize = is_largest ? size_t(-1) : size_t(__builtin_floor(buckets * double(_M_max_load_factor)));
  return buckets;
}

pair<bool, size_t> _Prime_rehash_policy::_M_need_rehash(size_t buckets, size_t elements, size_t more) const {
  if (elements + more <= _M_next_resize) return {false, 0};
  // The first element makes room for eleven.
  size_t least = std::max<size_t>(elements + more, _M_next_resize ? 0 : 11);
  double wanted = least / double(_M_max_load_factor);
  if (wanted >= buckets) {
    size_t grown = std::max<size_t>(__builtin_floor(wanted) + 1, buckets * _S_growth_factor);
    return {true, _M_next_bkt(grown)};
  }
  _M_next_resize = __builtin_floor(buckets * double(_M_max_load_factor));
  return {false, 0};
}

}  // namespace __detail
}  // namespace std

#if _GLIBCXX_USE_CXX11_ABI && __cplusplus < 202002L
// The headers of C++20 compile them with the program; before, they leave them to the library.
template class std::basic_string<char>;
#endif
