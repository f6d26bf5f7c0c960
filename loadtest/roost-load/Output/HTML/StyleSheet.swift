/// How the page looks, on a screen in the light and in the dark, on a phone and on paper.
enum StyleSheet {
    /// How many lines of a plot can be told apart; each has a colour and a dash of its own.
    static let seriesCount = 6

    // The colours are told apart by people who confuse red with green, and the dashes by printers.
    static let text = """
        :root {
          --page: #fff; --card: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d8dee4; --grid: #e7ebef; --shade: #f3f5f7;
          --good: #00634a; --bad: #a63a00;
          --s0: #0072b2; --s1: #d55e00; --s2: #35a360; --s3: #7f8996; --s4: #5e3800; --s5: #383d41;
        }
        @media screen and (prefers-color-scheme: dark) {
          :root {
            --page: #0f1419; --card: #161c23; --ink: #e3e8ee; --soft: #9aa6b2; --rule: #2e3742; --grid: #28313b; --shade: #1d242c;
            --good: #4ccfa5; --bad: #ff9a5c;
            --s0: #56b4e9; --s1: #ff9148; --s2: #5fe3a8; --s3: #b57c8a; --s4: #f2e74b; --s5: #e8f1f5;
          }
        }
        * { box-sizing: border-box; }
        body {
          margin: 0 auto; padding: 24px 20px 48px; max-width: 1180px; background: var(--page); color: var(--ink);
          font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
          overflow-wrap: anywhere;
        }
        header p { margin: 4px 0; color: var(--soft); }
        header b { color: var(--ink); }
        .tool { font-size: 13px; letter-spacing: .04em; }
        h1 { margin: 0; font-size: 28px; line-height: 1.2; }
        h2 { margin: 28px 0 8px; font-size: 17px; }
        header .verdict {
          display: inline-block; margin-top: 12px; padding: 6px 12px; border: 1px solid var(--rule); border-left-width: 5px;
          border-radius: 4px;
        }
        header .passed { border-color: var(--good); }
        header .missed { border-color: var(--bad); }
        .passed, .passed b { color: var(--good); }
        .missed, .missed b { color: var(--bad); font-weight: 600; }
        .highlights { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; margin: 20px 0 0; }
        .highlights div { padding: 10px 14px; border: 1px solid var(--rule); border-radius: 6px; background: var(--card); }
        .highlights dt { color: var(--soft); font-size: 13px; }
        .highlights dd { margin: 2px 0 0; font-size: 22px; font-variant-numeric: tabular-nums; }
        .plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 16px; margin-top: 24px; }
        figure {
          margin: 0; padding: 14px 14px 10px; border: 1px solid var(--rule); border-radius: 6px; background: var(--card);
        }
        figcaption { font-weight: 600; }
        .axis { margin: 2px 0; color: var(--soft); font-size: 12.5px; }
        .axis.below { text-align: right; }
        .legend { margin-top: 8px; }
        figure > svg { display: block; width: 100%; height: auto; touch-action: pan-y; }
        .tick { fill: var(--soft); font-size: 12.5px; font-variant-numeric: tabular-nums; }
        .grid { stroke: var(--grid); }
        .before { fill: var(--shade); }
        .line { stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
        .s0 { stroke: var(--s0); fill: var(--s0); }
        .s1 { stroke: var(--s1); fill: var(--s1); stroke-dasharray: 7 4; }
        .s2 { stroke: var(--s2); fill: var(--s2); stroke-dasharray: 2 4; }
        .s3 { stroke: var(--s3); fill: var(--s3); stroke-dasharray: 9 4 2 4; }
        .s4 { stroke: var(--s4); fill: var(--s4); stroke-dasharray: 10 3 2 3 2 3; }
        .s5 { stroke: var(--s5); fill: var(--s5); stroke-dasharray: 4 4; }
        .line { fill: none; }
        .band { fill-opacity: .24; stroke-width: .6; stroke-opacity: .5; stroke-dasharray: none; }
        .cursor { stroke: var(--soft); visibility: hidden; pointer-events: none; }
        .place { fill: none; pointer-events: all; }
        output { display: block; margin: 2px 0; font-size: 12.5px; font-variant-numeric: tabular-nums; }
        output:empty, output:not(:empty) + .axis { display: none; }
        .note { margin: 6px 0 0; color: var(--soft); font-size: 12.5px; }
        .wide { overflow-x: auto; }
        table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
        th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
        tbody th { font-weight: normal; }
        thead th { color: var(--soft); font-weight: normal; font-size: 13px; }
        .number, .legend td, .legend thead th, .values td { text-align: right; white-space: nowrap; }
        .legend, .values { width: 100%; font-size: 13.5px; }
        .legend th, .legend td, .values th, .values td { padding: 3px 0 3px 10px; }
        .legend th:first-child, .values th:first-child { padding-left: 0; min-width: 7em; }
        .swatch { width: 28px; height: 8px; margin-right: 8px; vertical-align: middle; }
        details { margin-top: 8px; font-size: 13.5px; }
        summary { color: var(--soft); cursor: pointer; }
        .tables { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 32px; align-items: start; }
        .tables table { width: 100%; }
        pre { margin: 0; padding: 12px; border: 1px solid var(--rule); border-radius: 6px; white-space: pre-wrap; }
        code { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
        @media screen and (max-width: 760px) {
          body { padding: 16px 12px 32px; }
          .plots, .tables { grid-template-columns: minmax(0, 1fr); }
          .highlights { grid-template-columns: repeat(2, minmax(0, 1fr)); }
          figure { padding: 12px 8px 8px; }
          .tick { font-size: 16px; }
          .line { stroke-width: 2.25; }
        }
        @media print, (max-width: 1000px) {
          .legend { font-size: 12px; }
          .legend th, .legend td { padding-left: 6px; }
          .legend th:first-child { min-width: 5em; }
          .swatch { width: 20px; margin-right: 5px; }
        }
        @media print {
          body { max-width: none; padding: 0; font-size: 11pt; }
          .tick { font-size: 15px; }
          .legend { font-size: 8pt; }
          figure, tr, .highlights div { break-inside: avoid; }
          details, output { display: none; }
          * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
        }

        """
}

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
