// Opens report pages in headless Chromium and checks what a reader would see. Speaks the DevTools
// protocol over two pipes, so it needs Node.js and Chromium and nothing else.
//
//   node check.mjs CHROMIUM PLAIN.html HOSTILE.html LARGE.html [SCREENSHOTS]
//
// Ends with 0 when all is well, with 1 when a page is not what it should be, and with 3 when the
// browser itself did not work: it did not start, it ended, or it did not answer.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, plain, hostile, large, pictures] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "foretell-browser-"));
const browser = spawn(chromium, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
  "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
  `--user-data-dir=${profile}`], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const [, , , to, from] = browser.stdio;

// The browser, not a page, is at fault. Kills the whole of it: nothing may wait for it any longer.
const noBrowser = (why) => {
  console.log(`NO BROWSER: ${why}`);
  browser.kill("SIGKILL");
  process.exit(3);
};
browser.on("error", (error) => noBrowser(String(error)));
to.on("error", () => {}); // its end is told by the exit
from.on("error", () => {});

let last = 0, buffer = "";
const waiting = new Map(), listeners = new Set();
from.on("data", (chunk) => {
  buffer += chunk;
  for (let end; (end = buffer.indexOf("\0")) >= 0;) {
    const message = JSON.parse(buffer.slice(0, end));
    buffer = buffer.slice(end + 1);
    if (message.id) {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
    } else {
      listeners.forEach((listener) => listener(message));
    }
  }
});
// However busy the machine is: what takes longer than this does not come any more.
const PATIENCE = 180_000;
const patient = (what, promise) => {
  const late = setTimeout(() => noBrowser(`no answer to ${what}`), PATIENCE);
  return promise.finally(() => clearTimeout(late));
};
const send = (method, params = {}, sessionId = undefined) => patient(method, new Promise((resolve, reject) => {
  const id = ++last;
  waiting.set(id, { resolve, reject });
  to.write(JSON.stringify({ id, method, params, sessionId }) + "\0");
}));

let failures = 0;
const check = (what, holds, detail = "") => {
  console.log(`${holds ? "ok" : "FAILED"}: ${what}${holds ? "" : " " + JSON.stringify(detail)}`);
  if (!holds) failures++;
};

// A page with everything that went wrong in it.
const open = async (file, width, height) => {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const page = { complaints: [], requests: [] };
  // Of which document: the empty page before ours is loaded, too, sooner or later.
  const loaded = new Set();
  let look = () => {};
  listeners.add((message) => {
    if (message.method === "Inspector.targetCrashed") noBrowser("a page crashed");
    if (message.sessionId !== sessionId) return;
    if (message.method === "Runtime.exceptionThrown") page.complaints.push(message.params.exceptionDetails.text);
    if (message.method === "Log.entryAdded") page.complaints.push(message.params.entry.text);
    if (message.method === "Runtime.consoleAPICalled") page.complaints.push(message.params.type);
    if (message.method === "Network.requestWillBeSent") page.requests.push(message.params.request.url);
    if (message.method === "Page.lifecycleEvent" && message.params.name === "load") {
      loaded.add(message.params.loaderId);
      look();
    }
  });
  const here = (method, params) => send(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network", "Inspector"]) await here(`${domain}.enable`);
  await here("Page.setLifecycleEventsEnabled", { enabled: true });
  await here("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
  const url = pathToFileURL(file).href;
  const { loaderId } = await here("Page.navigate", { url });
  await patient(`loading ${url}`, new Promise((resolve) => {
    look = () => { if (loaded.has(loaderId)) resolve(); };
    look();
  }));
  page.url = url;
  page.run = async (expression) => {
    const answer = await here("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (answer.exceptionDetails) throw new Error(`${expression}: ${answer.exceptionDetails.exception?.description}`);
    return answer.result.value;
  };
  // Keys and clicks reach a page only when it has been painted, and change it before the next frame.
  page.painted = () => page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
  await page.painted();
  page.key = async (key, code) => {
    for (const type of ["keyDown", "keyUp"]) await here("Input.dispatchKeyEvent", { type, key, code, windowsVirtualKeyCode: { ArrowRight: 39, ArrowLeft: 37, End: 35, Home: 36 }[key] });
    await page.painted();
  };
  page.click = async (x, y) => {
    await page.painted(); // where it has scrolled to
    for (const type of ["mousePressed", "mouseReleased"]) await here("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    await page.painted();
  };
  page.picture = async (name) => {
    if (!pictures) return;
    const { data } = await here("Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
    writeFileSync(join(pictures, name), Buffer.from(data, "base64"));
  };
  page.quiet = (what) => {
    check(`${what}: no console errors`, page.complaints.length === 0, page.complaints);
    const others = page.requests.filter((request) => request !== page.url);
    check(`${what}: no network`, others.length === 0, others);
  };
  return page;
};
const now = (page) => page.run("document.querySelector('.now').textContent");

const tests = async () => {
  for (const width of [1280, 390]) {
    const page = await open(plain, width, 900);
    check(`${width}: both orders are shown`, await page.run(`(() => {
      const [recorded, predicted] = window.foretell.panels;
      const seen = (panel) => panel.drawn > 3 && panel.canvas.width > 200
        && new Set(panel.canvas.getContext("2d").getImageData(0, 0, panel.canvas.width, panel.canvas.height).data).size > 8;
      return seen(recorded) && seen(predicted) && recorded.order.join() !== predicted.order.join();
    })()`));
    check(`${width}: nothing is wider than the page`, await page.run(
      "document.documentElement.scrollWidth <= innerWidth"), await page.run("document.documentElement.scrollWidth"));
    check(`${width}: beside each other where there is room`, await page.run(`(() => {
      const [a, b] = [...document.querySelectorAll(".order")].map((order) => order.getBoundingClientRect());
      return innerWidth > 1000 ? a.top === b.top && a.right <= b.left : a.bottom <= b.top;
    })()`));
    await page.picture(`report-${width}.png`);
    await page.run("document.querySelector('[aria-label^=\"next step\"]').click()");
    const first = await now(page);
    check(`${width}: the stepper begins`, first.startsWith("step 1 of "), first);
    await page.run("document.activeElement.blur(), document.body.focus()");
    await page.key("ArrowRight", "ArrowRight");
    const second = await now(page);
    check(`${width}: a key steps on`, second.startsWith("step 2 of ") && second !== first, second);
    await page.key("End", "End");
    const end = await now(page);
    const [, at, of] = end.match(/step (\d+) of (\d+)/) || [];
    check(`${width}: the last step is reached`, at !== undefined && at === of, end);
    check(`${width}: the event's source and value are shown`, await page.run(
      "document.querySelector('.details dl') !== null"));
    await page.picture(`step-${width}.png`);
    const spot = await page.run(`(() => {
      const scroller = document.querySelector(".scroller");
      scroller.scrollIntoView({ block: "center" });
      const box = scroller.getBoundingClientRect();
      return { x: box.left + 80, y: box.top + 40 };
    })()`);
    const before = await page.run("document.querySelector('.details').textContent");
    await page.click(spot.x, spot.y);
    check(`${width}: a click shows an event`, await page.run("document.querySelector('.details').textContent") !== before
      && await page.run("window.foretell.panels[0].selected !== null"));
    const back = await page.run("getComputedStyle(document.documentElement).backgroundColor");
    await page.run("document.getElementById('theme').click()");
    check(`${width}: light and dark differ`, await page.run("getComputedStyle(document.documentElement).backgroundColor") !== back);
    await page.picture(`dark-${width}.png`);
    check(`${width}: the fix is a diff`, await page.run("document.querySelectorAll('pre.diff .add, pre.diff .del').length > 0"));
    check(`${width}: the formula is a graph`, await page.run("document.querySelectorAll('svg.graph .edge').length >= 2"));
    check(`${width}: what was not seen is said`, (await page.run("document.querySelector('main').textContent")).includes("not seen: "));
    page.quiet(String(width));
  }

  const page = await open(hostile, 1280, 900);
  check("hostile: nothing of it became an element", await page.run(
    "document.querySelectorAll('script').length === 2 && document.querySelectorAll('img, iframe, b').length === 0"));
  check("hostile: nothing of it ran", await page.run("window.stolen === undefined"));
  const text = await page.run("document.body.innerText");
  check("hostile: markup is shown as text", text.includes("<script>window.stolen=1</script>"), text.slice(0, 300));
  check("hostile: quotes are shown as text", text.includes(`"'\`><img src=x onerror=window.stolen=2>`));
  check("hostile: a mark of direction is written out", text.includes("\\u{202e}") && !text.includes("\u202e"));
  check("hostile: a long name does not burst the page", await page.run("document.documentElement.scrollWidth <= innerWidth"));
  check("hostile: a long name is there", text.includes("long".repeat(40)));
  await page.picture("hostile-1280.png");
  page.quiet("hostile");

  const many = await open(large, 1280, 900);
  const figures = await many.run(`new Promise((done) => {
    const panel = window.foretell.panels[1];
    const started = performance.now();
    let frames = 0;
    const turn = () => {
      panel.scroller.scrollTop = (frames / 20) * panel.scroller.scrollHeight;
      panel.draw();
      if (++frames < 20) requestAnimationFrame(turn);
      else done({ events: panel.order.length, drawn: panel.drawn, time: performance.now() - started });
    };
    turn();
  })`);
  console.log(`large: ${JSON.stringify(figures)}`);
  check("large: 50,000 events", figures.events >= 50000, figures);
  check("large: only what is visible is drawn", figures.drawn < 100, figures);
  await many.run("document.querySelector('#story').click()");
  await many.key("End", "End");
  const end = await now(many);
  check("large: the last of all steps is reached", end.startsWith(`step ${figures.events} of ${figures.events}`), end);
  many.quiet("large");
};

let over = false;
browser.on("exit", (code) => { if (!over) noBrowser(`it ended with ${code}`); });
try {
  await tests();
} catch (error) {
  check("the page could be driven", false, String(error.stack || error));
}
over = true;
await Promise.race([send("Browser.close").catch(() => {}), new Promise((resolve) => setTimeout(resolve, 3000))]);
browser.kill();
try {
  rmSync(profile, { recursive: true, force: true });
} catch {
  // A process of the browser that ends later still writes there. What is left lies in the folder of
  // temporary files and says nothing about the report.
}
process.exit(failures ? 1 : 0);
