// What is nicer with JavaScript; nothing here is needed for any decision.

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-autosubmit]")) event.target.form.submit();
});

// Live parts: the same page, or the lighter one that `data-live-from` names, is read again, and what
// changed is put in place, by the part's name if it has one. Forms stand outside of them, so that nobody
// loses a word. A page that is dear to make says with `data-live-every` how many milliseconds to wait, and
// with `data-live-whole` after how many of them all of it is read, with the parts that the lighter one lacks.
const LIVE_EVERY_MS = Number(document.querySelector("[data-live-every]")?.dataset.liveEvery ?? 3000);

let readWholeAt = performance.now();

function renewedPart(fresh, part, index) {
  const name = part.dataset.live;
  return name ? fresh.querySelector(`[data-live="${CSS.escape(name)}"]`) : fresh.querySelectorAll("[data-live]")[index];
}

async function refreshLiveParts() {
  const parts = document.querySelectorAll("[data-live]");
  if (!parts.length || document.hidden) return;
  const lighter = document.querySelector("[data-live-from]")?.dataset;
  const whole = performance.now() - readWholeAt >= Number(lighter?.liveWhole ?? Infinity);
  if (whole) readWholeAt = performance.now();
  const source = whole ? location.href : lighter?.liveFrom ?? location.href;
  const answer = await fetch(source, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!fresh.querySelector("[data-live]")) return source === location.href ? location.reload() : undefined;
  if (fresh.title) document.title = fresh.title;
  document.querySelectorAll("[data-waiting]").forEach((number) => {
    const next = fresh.querySelector(`[data-waiting="${CSS.escape(number.dataset.waiting)}"]`);
    if (next) number.replaceChildren(...next.childNodes);
  });
  parts.forEach((part, index) => {
    const next = renewedPart(fresh, part, index);
    if (!next || next.innerHTML === part.innerHTML || part.contains(document.activeElement)) return;
    const open = [...part.querySelectorAll("details")].map((each) => each.open);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((each, place) => { if (open[place]) each.open = true; });
  });
}

setInterval(() => refreshLiveParts().catch(() => {}), LIVE_EVERY_MS);
document.addEventListener("visibilitychange", () => refreshLiveParts().catch(() => {}));

// The search: Ctrl-K anywhere ("/" is in shortcuts.js). Where its field is hidden, its page has one.
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
  const field = document.querySelector("#fc-words, #fc-find");
  if (!field) return;
  event.preventDefault();
  if (field.offsetParent === null) return field.form.submit();
  field.focus();
  field.select();
});

// Times that run out are counted down between two looks at the server.
const spanned = (seconds) => {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  return `${seconds} s`;
};
const firstSeen = new WeakMap();
setInterval(() => {
  for (const each of document.querySelectorAll("[data-countdown]")) {
    if (!firstSeen.has(each)) firstSeen.set(each, performance.now());
    const left = Math.round(Number(each.dataset.countdown) - (performance.now() - firstSeen.get(each)) / 1000);
    each.textContent = left > 0 ? spanned(left) : `over for ${spanned(-left)}`;
  }
}, 1000);
