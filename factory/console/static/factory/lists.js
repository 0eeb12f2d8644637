// Choosing rows of a list: all of a page at once, a stretch of them with Shift, and how many are chosen.

const boxes = [...document.querySelectorAll("#changelist-form input.action-select")];
const all = document.querySelector("[data-choose-all]");
const said = document.querySelector("[data-chosen]");
let last = null;
let stretching = false;

function tell() {
  const chosen = boxes.filter((box) => box.checked).length;
  said.textContent = `${chosen} of ${boxes.length} chosen`;
  all.textContent = chosen === boxes.length ? "Choose none" : "Choose all of this page";
}

function changed() {
  said.setAttribute("aria-live", "polite"); // from now on: nobody is told what they have not done
  tell();
}

if (boxes.length && all) {
  all.parentElement.hidden = false;
  all.addEventListener("click", () => {
    const every = boxes.some((box) => !box.checked);
    boxes.forEach((box) => (box.checked = every));
    changed();
  });
  boxes.forEach((box, at) => {
    box.addEventListener("click", (event) => (stretching = event.shiftKey));
    box.addEventListener("change", () => {
      const [from, to] = stretching && last !== null ? [last, at].sort((a, b) => a - b) : [at, at];
      boxes.slice(from, to + 1).forEach((each) => (each.checked = box.checked));
      last = at;
      changed();
    });
  });
  addEventListener("pageshow", tell); // the browser fills boxes in again when somebody comes back
}
