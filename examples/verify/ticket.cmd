# A ticket lock, for ever; safe for unboundedly many tickets.
shared next = 0, serving = 0, inside = 0;
thread a, b {
  local mine = 0;
  while (true) {
    mine, next := next, next + 1;
    assume(serving == mine);
    inside := inside + 1;
    assert(inside == 1);
    inside := inside - 1;
    serving := serving + 1;
  }
}
