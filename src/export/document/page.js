for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement;
    const body = head.closest("table").tBodies[0];
    const column = head.cellIndex;
    const isDescending = head.ariaSort ? head.ariaSort !== "descending" : head.classList.contains("n");
    const sign = isDescending ? -1 : 1;
    const key = (row) => row.cells[column].dataset.key;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x !== undefined && y !== undefined) return sign * (Number(x) - Number(y));
      return sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en", { numeric: true });
    };
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    body.append(...Array.from(body.rows).sort(compare));
  });
}
