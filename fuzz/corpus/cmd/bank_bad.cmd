# Fig. 1 of 001, unsafe: both read the balance before one writes it.
shared balance = *, x = *, w = *, d = *, withdrawn = 0, deposited = 0;
initially x == balance && w > 0 && d > 0;
thread withdraw {
  local t = 0;
  t := balance;
  balance := t - w;
  withdrawn := 1;
}
thread deposit {
  local t = 0;
  t := balance;
  balance := t + d;
  deposited := 1;
}
thread check {
  assume(deposited == 1 && withdrawn == 1);
  assert(balance == x + d - w);
}
