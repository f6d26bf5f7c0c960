/// Shows at once, and to fingers too, what the stripes of a plot tell; without it browsers show the same after a while.
enum HoverScript {
    static let text = """
        for (const figure of document.querySelectorAll("figure")) {
          const cursor = figure.querySelector(".cursor"), output = figure.querySelector("output");
          const show = (event) => {
            const place = event.target.closest(".place");
            if (!place) return;
            cursor.setAttribute("transform", `translate(${place.dataset.x})`);
            cursor.style.visibility = "visible";
            output.textContent = place.firstElementChild.textContent;
          };
          figure.addEventListener("pointermove", show);
          figure.addEventListener("pointerdown", show);
          figure.addEventListener("pointerleave", () => {
            cursor.style.visibility = "";
            output.textContent = "";
          });
        }

        """
}
