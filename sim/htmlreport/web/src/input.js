import { zoomIdentity } from 'd3-zoom';

// listen has a timeline obey the pointer and the keyboard. A page's own scroll
// is never taken: a wheel zooms with Ctrl or ⌘, and one finger pans sideways only.
export function listen(timeline) {
  const { over, root } = timeline;
  const at = e => {
    const box = over.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  };
  let pressed = null, pan = null;

  over.addEventListener('pointerdown', e => {
    const [x, y] = pressed = at(e);
    if (e.shiftKey && e.pointerType === 'mouse') {
      timeline.box = [x, x];
      over.setPointerCapture(e.pointerId);
    } else if (e.pointerType === 'touch') {
      pan = e.isPrimary ? { x, y, from: timeline.transform.x, moved: false } : null;
    }
  });
  over.addEventListener('pointermove', e => {
    const [x, y] = at(e);
    timeline.touched = e.pointerType === 'touch';
    if (timeline.box) {
      timeline.box[1] = x;
      timeline.drawOver();
    } else if (pan) {
      pan.moved ||= Math.abs(x - pan.x) > 4;
      if (pan.moved) timeline.zoomed.call(timeline.zoom.transform, constrain(timeline, pan.from + x - pan.x));
    } else if (!timeline.touched) {
      timeline.cursor = x >= timeline.left && x <= timeline.left + timeline.plotWidth ? x : null;
      timeline.hovered = timeline.at(x, y);
      over.style.cursor = timeline.hovered?.weight > 0 ? 'pointer' : timeline.transform.k > 1.001 ? 'grab' : 'crosshair';
      timeline.drawOver();
      timeline.showTip(x, y);
    }
  });
  over.addEventListener('pointerup', e => {
    const [x, y] = at(e), still = pressed && !pan?.moved && Math.hypot(x - pressed[0], y - pressed[1]) < 5;
    const box = timeline.box?.sort((a, b) => a - b);
    pressed = pan = timeline.box = null;
    if (box && box[1] - box[0] > 6) timeline.look(timeline.axis.time(box[0]), timeline.axis.time(box[1]));
    else if (still) {
      const target = timeline.at(x, y);
      timeline.select(target?.ref || null, target);
      enter();
    }
  });
  // A finger's click comes later, after it has moved the focus here.
  const enter = () => {
    if (!timeline.selected) return;
    root.focus({ preventScroll: true });
    timeline.owner.entered();
  };
  over.addEventListener('click', enter);
  over.addEventListener('pointercancel', () => { pressed = pan = timeline.box = null; });
  over.addEventListener('pointerleave', () => {
    timeline.cursor = timeline.hovered = null;
    timeline.tip.hidden = true;
    timeline.drawOver();
  });
  over.addEventListener('dblclick', e => timeline.zoomBy(3, timeline.axis.time(at(e)[0])));
  wheel(timeline);
  root.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || !press(timeline, e.key, e.shiftKey)) return;
    e.preventDefault();
  });
}

// constrain is the transform with that shift, within the run.
function constrain(timeline, x) {
  const { k } = timeline.transform;
  return zoomIdentity.translate(Math.max(-(k - 1) * timeline.plotWidth, Math.min(0, x)), 0).scale(k);
}

function wheel(timeline) {
  let hide, told = false;
  timeline.over.addEventListener('wheel', e => {
    if (e.ctrlKey || e.metaKey) return;
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) {
      e.preventDefault();
      timeline.zoomed.call(timeline.zoom.transform, constrain(timeline, timeline.transform.x - (e.deltaX || e.deltaY)));
    } else if (!told) {
      timeline.hint.hidden = false;
      timeline.hint.textContent = `${/Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl'} + scroll to zoom`;
      clearTimeout(hide);
      hide = setTimeout(() => {
        timeline.hint.hidden = true;
        told = true;
      }, 1400);
    }
  }, { passive: false });
}

// press does what a key means, and reports whether it means anything.
function press(timeline, key, shift) {
  const { selected, owner, run } = timeline, around = selected?.words.t;
  switch (key) {
    case '+': case '=': timeline.zoomBy(2, around); break;
    case '-': case '_': timeline.zoomBy(0.5, around); break;
    case '0': case 'Home': timeline.look(0, run.end); break;
    case 'ArrowRight': case 'ArrowLeft': {
      const by = key === 'ArrowRight' ? 1 : -1;
      if (shift) timeline.panBy(by / 4);
      else timeline.step(by);
      break;
    }
    case 'ArrowDown': timeline.stepLane(1); break;
    case 'ArrowUp': timeline.stepLane(-1); break;
    case 'f': case 'F': timeline.stepFault(shift ? -1 : 1); break;
    case 'z': case 'Z': owner.fold(); break;
    case 'Enter': if (selected) { timeline.look(...selected.words.span); owner.entered(); } break;
    case 'Escape': timeline.select(null); break;
    default: return false;
  }
  return true;
}
