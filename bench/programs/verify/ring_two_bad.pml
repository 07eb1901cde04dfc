/* ring_two_bad.c by hand: the same shared variables and steps. */
int cells[2], sum;
byte slots = 3, items;
byte ended;
active proctype one() {
  int i;
  for (i : 0 .. 2) {
    atomic { slots > 0 -> slots-- };
    cells[i % 2] = i + 1;
    items++
  };
  ended++
}
active proctype two() {
  int i, t;
  for (i : 0 .. 2) {
    atomic { items > 0 -> items-- };
    t = cells[i % 2];
    sum = sum + t;
    slots++
  };
  ended++
}
active proctype end() {
  ended == 2;
  assert(sum == 6)
}
