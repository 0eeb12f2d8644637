// What is nicer with JavaScript; nothing here is needed for any decision.

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-autosubmit]")) event.target.form.submit();
});

// Live parts: the same page is read again, and what changed is put in place.
// Forms stand outside of them, so that nobody loses a word.
const LIVE_EVERY_MS = 3000;

async function refreshLiveParts() {
  const parts = document.querySelectorAll("[data-live]");
  if (!parts.length || document.hidden) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const renewed = fresh.querySelectorAll("[data-live]");
  if (!renewed.length) return location.reload();
  parts.forEach((part, index) => {
    const next = renewed[index];
    if (!next || next.innerHTML === part.innerHTML) return;
    const open = [...part.querySelectorAll("details")].map((each) => each.open);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((each, place) => { if (open[place]) each.open = true; });
  });
}

setInterval(() => refreshLiveParts().catch(() => {}), LIVE_EVERY_MS);
