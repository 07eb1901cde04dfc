# Two readers and a writer; safe.
shared readers = 0, writing = 0, data = 0;
thread r, s {
  local seen = 0;
  when (writing == 0) readers := readers + 1;
  seen := data;
  assert(seen == data);
  readers := readers - 1;
}
thread w {
  when (readers == 0 && writing == 0) writing := 1;
  data := data + 1;
  data := data + 1;
  writing := 0;
}
