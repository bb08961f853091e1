// Transcripts follow their recordings: the word that is said is lit, and a word that is chosen is played from its start.
(() => {
  "use strict";

  // Words are one stop of the tab key; arrows move among them, as in a toolbar.
  const KEYS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

  // A recording that is not loaded yet has no place to go to, nor has one whose server cannot send a part of it: that
  // one is fetched whole.
  async function ready(audio) {
    const loaded = () => new Promise((resolve) => audio.addEventListener("loadedmetadata", resolve, { once: true }));
    if (audio.readyState < HTMLMediaElement.HAVE_METADATA) {
      audio.preload = "auto";
      const done = loaded();
      audio.load();
      await done;
    }
    if (audio.seekable.length && audio.seekable.end(0) > 0) return;
    const answer = await fetch(audio.currentSrc);
    const done = loaded();
    audio.src = URL.createObjectURL(await answer.blob());
    await done;
  }

  function follow(transcript) {
    const audio = transcript.closest(".nest-sample").querySelector("audio");
    if (!audio) return;
    const words = [...transcript.querySelectorAll("[data-start]")];
    const starts = words.map((word) => Number(word.dataset.start));
    const ends = words.map((word) => Number(word.dataset.end));
    let lit = -1;

    transcript.setAttribute("role", "group");
    transcript.setAttribute(
      "aria-label",
      `What ${transcript.dataset.recording} says. Choose a word to hear it; arrow keys move from word to word.`,
    );
    words.forEach((word, place) => {
      word.setAttribute("role", "button");
      word.tabIndex = place ? -1 : 0;
      const sure = word.dataset.sure ? `, probability ${word.dataset.sure}` : "";
      word.title = `${starts[place].toFixed(2)} to ${ends[place].toFixed(2)} s${sure}`;
    });

    const light = () => {
      const now = audio.currentTime;
      const place = starts.findLastIndex((start) => start <= now);
      const said = place >= 0 && now < ends[place] && !(audio.paused && now === 0) ? place : -1;
      if (said === lit) return;
      words[lit]?.removeAttribute("aria-current");
      words[said]?.setAttribute("aria-current", "true");
      lit = said;
    };

    // `timeupdate` comes four times a second, which is less than there are words.
    const run = () => {
      light();
      if (!audio.paused && !audio.ended) requestAnimationFrame(run);
    };
    audio.addEventListener("play", () => {
      for (const other of document.querySelectorAll(".nest-sample audio")) if (other !== audio) other.pause();
      run();
    });
    for (const kind of ["timeupdate", "seeked", "pause", "ended"]) audio.addEventListener(kind, light);

    const hear = async (place) => {
      await ready(audio);
      audio.currentTime = starts[place];
      audio.play().catch(() => {}); // a browser that lets nothing sound still shows the place
    };

    const move = (place) => {
      for (const word of words) word.tabIndex = -1;
      words[place].tabIndex = 0;
      words[place].focus();
    };

    transcript.addEventListener("click", ({ target }) => {
      const place = words.indexOf(target.closest("[data-start]"));
      if (place < 0 || String(getSelection())) return; // text that is being marked is no choice
      move(place);
      hear(place);
    });
    transcript.addEventListener("keydown", (event) => {
      const place = words.indexOf(event.target);
      if (place < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" || event.key === " ") hear(place);
      else if (event.key in KEYS) move(Math.min(Math.max(place + KEYS[event.key], 0), words.length - 1));
      else return;
      event.preventDefault();
    });
  }

  document.querySelectorAll(".nest-words").forEach(follow);
})();
